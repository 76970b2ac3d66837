# Every impersonation says who acts: an exchange needs an actor token, so each token carries `act`.
package surrogate.impersonation

deny contains "actor_required" if {
	input.stage == "exchange"
	not input.actor
}
