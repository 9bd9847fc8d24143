package org.apache.spark.sql;

/** Stands where Spark's job of one statement stood, for control planes that can only launch that class. */
public final class FlintJob {
    private FlintJob() {}

    /** Runs the native program in this process's place. */
    public static void main(String[] arguments) throws Exception {
        NativeJob.run("org.apache.spark.sql.FlintJob", arguments);
    }
}
