#!/bin/sh
# Starts DynamoDB Local with the Java of this machine. It is placed where LocalStack looks for its own Java.
# LocalStack calls it as `java <options> -jar …/DynamoDBLocal.jar <arguments>`; the class path has every jar of that folder.
#
# DynamoDB Local has no option for an address: it listens on all interfaces while a suite runs, with test data in memory.
# All other servers of the tests listen on loopback.
set -eu
cd "$(dirname "$0")/../../../dynamodb-local/2"
count=$#
seen_jar=
while [ "$count" -gt 0 ]; do
  word=$1
  shift
  count=$((count - 1))
  case $seen_jar:$word in
    :-javaagent:*) ;; # an agent that LocalStack's installer adds; the tests do not need it
    :-jar) seen_jar=next ;;
    next:*)
      seen_jar=yes
      set -- "$@" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp 'DynamoDBLocal_lib/*' \
        com.amazonaws.services.dynamodbv2.local.main.ServerRunner
      ;;
    *) set -- "$@" "$word" ;;
  esac
done
unset LD_LIBRARY_PATH JAVA_HOME
# A killed LocalStack would leave this process behind, so the kernel is asked to end it with its parent.
if command -v setpriv >/dev/null; then exec setpriv --pdeathsig KILL "$COUNTERSIGN_JAVA" "$@"; fi
exec "$COUNTERSIGN_JAVA" "$@"
