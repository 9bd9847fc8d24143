// OpenSearch's SQL plugin, as far as it has to do with us: its client of EMR Serverless, and the documents that it writes and reads, in its order of work.

import com.amazonaws.auth.AWSStaticCredentialsProvider;
import com.amazonaws.auth.BasicAWSCredentials;
import com.amazonaws.services.emrserverless.AWSEMRServerless;
import com.amazonaws.services.emrserverless.AWSEMRServerlessClientBuilder;
import com.amazonaws.services.emrserverless.model.CancelJobRunRequest;
import com.amazonaws.services.emrserverless.model.GetJobRunRequest;
import com.amazonaws.services.emrserverless.model.JobDriver;
import com.amazonaws.services.emrserverless.model.SparkSubmit;
import com.amazonaws.services.emrserverless.model.StartJobRunRequest;
import com.amazonaws.services.emrserverless.model.ValidationException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

public class OrderOfWork {
  static final HttpClient HTTP = HttpClient.newHttpClient();
  static String opensearch, source, job;

  static String ask(String method, String path, String body) throws Exception {
    HttpRequest request = HttpRequest.newBuilder(URI.create(opensearch + path)).header("Content-Type", "application/json")
        .method(method, HttpRequest.BodyPublishers.ofString(body)).build();
    return HTTP.send(request, HttpResponse.BodyHandlers.ofString()).body();
  }

  static void create(String id, String document) throws Exception {
    String made = ask("PUT", "/.query_execution_request_" + source + "/_create/" + id + "?refresh=wait_for", document);
    if (!made.contains("\"result\":\"created\"")) throw new IllegalStateException(made);
  }

  static String statement(String id, String query) throws Exception {
    create(id, String.format("{\"version\":\"1.0\",\"type\":\"statement\",\"state\":\"waiting\",\"statementId\":\"%s\",\"sessionId\":\"s\",\"accountId\":null,"
        + "\"applicationId\":\"app\",\"jobId\":\"%s\",\"lang\":\"sql\",\"dataSourceName\":\"%s\",\"query\":\"%s\",\"queryId\":\"q-%s\",\"submitTime\":%d,\"error\":\"\"}",
        id, job, source, query, id, System.currentTimeMillis()));
    for (int n = 0; n < 2000; n++) {
      String found = ask("POST", "/query_execution_result_" + source + "/_search?ignore_unavailable=true",
          "{\"query\":{\"term\":{\"queryId\":\"q-" + id + "\"}}}");
      if (found.contains("\"result\":[")) return found.replaceAll("(?s).*\"result\":(\\[.*?\\]).*", "$1");
      if (found.contains("\"status\":\"FAILED\"")) return "FAILED";
      Thread.sleep(20);
    }
    return ask("GET", "/.query_execution_request_" + source + "/_doc/" + id, "");
  }

  static void until(AWSEMRServerless emr, String... states) throws Exception {
    String state = "";
    for (int n = 0; n < 2000; n++) {
      state = emr.getJobRun(new GetJobRunRequest().withApplicationId("app").withJobRunId(job)).getJobRun().getState();
      for (String wanted : states) if (state.equals(wanted)) { System.out.println(state); return; }
      Thread.sleep(20);
    }
    throw new IllegalStateException("the job is " + state);
  }

  public static void main(String[] arguments) throws Exception {
    opensearch = arguments[0];
    source = arguments[1];
    AWSEMRServerless emr = AWSEMRServerlessClientBuilder.standard().withRegion("us-east-1")
        .withCredentials(new AWSStaticCredentialsProvider(new BasicAWSCredentials("AKID", "secret"))).build();
    String parameters = " --class org.apache.spark.sql.FlintREPL  --conf spark.hadoop.fs.s3.customAWSCredentialsProvider=x"
        + "  --conf spark.flint.datasource.name=" + source + "  --conf spark.flint.job.sessionId=s"
        + "  --conf spark.flint.job.requestIndex=.query_execution_request_" + source;
    StartJobRunRequest start = new StartJobRunRequest().withName("cluster:interactive").withApplicationId("app")
        .withExecutionRoleArn("arn:aws:iam::000000000000:role/x").withExecutionTimeoutMinutes(0L)
        .withJobDriver(new JobDriver().withSparkSubmit(new SparkSubmit().withEntryPoint("s3://jars/x.jar")
            .withEntryPointArguments("query_execution_result_" + source).withSparkSubmitParameters(parameters)));
    job = emr.startJobRun(start).getJobRunId();
    create("s", String.format("{\"version\":\"1.0\",\"type\":\"session\",\"sessionType\":\"interactive\",\"sessionId\":\"s\",\"state\":\"not_started\","
        + "\"dataSourceName\":\"%s\",\"applicationId\":\"app\",\"jobId\":\"%s\",\"accountId\":null,\"lastUpdateTime\":%d,\"error\":\"\"}",
        source, job, System.currentTimeMillis()));
    System.out.println(statement("one", "SELECT count(*) AS n FROM airports"));
    System.out.println(statement("two", "SELECT `city` FROM airports WHERE iata = 'ORD'"));
    System.out.println(statement("three", "SELECT nothing"));
    until(emr, "RUNNING");
    emr.cancelJobRun(new CancelJobRunRequest().withApplicationId("app").withJobRunId(job));
    until(emr, "CANCELLED", "SUCCESS");
    try {
      emr.startJobRun(start.withJobDriver(new JobDriver().withSparkSubmit(new SparkSubmit().withEntryPoint("x").withSparkSubmitParameters("--class x"))));
    } catch (ValidationException refused) {
      System.out.println(refused.getErrorCode() + " " + refused.getStatusCode());
    }
  }
}
