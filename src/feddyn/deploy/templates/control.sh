# Sourced by the scripts that speak to the SuperLink. The configuration is written each time: this folder may have moved.
mkdir -p "$$here/flwr"
cat >"$$here/flwr/config.$$$$" <<END
[superlink]
default = "local"

[superlink.local]
address = "127.0.0.1:$superlink"
root-certificates = "$$here/ca.crt"
END
mv "$$here/flwr/config.$$$$" "$$here/flwr/config.toml"

# Runs flwr, which ends with 0 also when it fails: its words tell. A SuperLink that is starting is waited for.
ask() {
  tries=1
  while :; do
    answer=$$(flwr "$$@" --format json) || true
    case $$answer in
      *'"success": true'*) printf '%s\n' "$$answer"; return 0 ;;
      *"Public key already in use"*) printf '%s\n' "$$3 is known already"; return 0 ;;
      *"SuperLink is unavailable"*) if [ $$tries -lt "$${FEDDYN_TRIES:-30}" ]; then tries=$$((tries + 1)); sleep 1; continue; fi ;;
    esac
    printf '%s\n' "flwr $$1 failed:" "$$answer" >&2
    return 1
  done
}
