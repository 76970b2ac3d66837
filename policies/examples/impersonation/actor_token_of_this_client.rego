# The actor token must have been issued to the application that exchanges it: one that leaked elsewhere is of no use here.
package surrogate.impersonation

deny contains "actor_token_of_another_client" if {
	input.stage == "exchange"
	input.actor
	not same_client
}

same_client if input.actor.clientId == input.client.id
