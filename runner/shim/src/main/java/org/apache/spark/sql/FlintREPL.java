package org.apache.spark.sql;

/** Stands where Spark's job of a session stood, for control planes that can only launch that class. */
public final class FlintREPL {
    private FlintREPL() {}

    /** Runs the native program in this process's place. */
    public static void main(String[] arguments) throws Exception {
        NativeJob.run("org.apache.spark.sql.FlintREPL", arguments);
    }
}
