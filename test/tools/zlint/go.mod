// zlint, the X.509 linter. Apart from ../kubernetes so that neither decides the other's dependency versions.
module countersign.dev/test/tools/zlint

go 1.26.0

tool github.com/zmap/zlint/v3/cmd/zlint

require (
	github.com/pelletier/go-toml v1.9.3 // indirect
	github.com/sirupsen/logrus v1.9.0 // indirect
	github.com/weppos/publicsuffix-go v0.30.0 // indirect
	github.com/zmap/zcrypto v0.0.0-20230310154051-c8b263fd8300 // indirect
	github.com/zmap/zlint/v3 v3.6.1 // indirect
	golang.org/x/crypto v0.17.0 // indirect
	golang.org/x/net v0.17.0 // indirect
	golang.org/x/sys v0.15.0 // indirect
	golang.org/x/text v0.14.0 // indirect
)
