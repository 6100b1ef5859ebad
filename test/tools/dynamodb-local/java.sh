#!/bin/sh
# What LocalStack finds where it looks for a Java of its own: starts DynamoDB Local with the Java of this machine.
# It is called as `java <options> -jar …/DynamoDBLocal.jar <arguments>` and gets every jar beside that one.
#
# DynamoDB Local has no option for an address: it listens on all interfaces, with invented data in memory, while a
# suite runs. Nothing else the tests start does.
set -eu
cd "$(dirname "$0")/../../../dynamodb-local/2"
count=$#
seen_jar=
while [ "$count" -gt 0 ]; do
  word=$1
  shift
  count=$((count - 1))
  case $seen_jar:$word in
    :-javaagent:*) ;; # an agent of LocalStack's installer; nobody here needs what it changes
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
# LocalStack may have to be killed, and would leave this behind: the kernel ends it with the one that started it.
if command -v setpriv >/dev/null; then exec setpriv --pdeathsig KILL "$COUNTERSIGN_JAVA" "$@"; fi
exec "$COUNTERSIGN_JAVA" "$@"
