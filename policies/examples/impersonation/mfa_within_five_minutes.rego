# Who acts must have signed in with a second factor in the last five minutes; whoever has not is told how to. Asked at minting where the
# actor's token came with the request, and at every exchange.
package surrogate.impersonation

step_up contains {"acr_values": ["urn:surrogate:acr:mfa", "urn:surrogate:acr:phr"], "max_age": 300} if {
	actor_is_asked
	not signed_in_well
}

actor_is_asked if input.stage == "exchange"

# While an approval is waited for minutes pass; the exchange asks again.
actor_is_asked if {
	input.actor.via
	not input.approval
}

signed_in_well if {
	input.actor.acr in {"urn:surrogate:acr:mfa", "urn:surrogate:acr:phr"}
	input.now - input.actor.auth_time <= 300
}
