# Who acts must have signed in. An actor token that itself came from a subject token proves only that some backend asked for it, one that
# came from a personal access token only that somebody has that.
package surrogate.impersonation

deny contains "actor_must_sign_in" if {
	input.stage == "exchange"
	input.actor
	not actor_signed_in
}

actor_signed_in if input.actor.via == "sign_in"
