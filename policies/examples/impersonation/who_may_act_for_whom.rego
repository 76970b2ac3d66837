# Who may act for whom, by roles: the acting party needs a role that covers every role of the subject. Without an acting party nothing is
# covered, so an exchange without an actor token is refused. At minting this is asked only when the request names the acting party.
package surrogate.impersonation

may_act_for := {
	"support": {"customer"},
	"support-lead": {"customer", "partner"},
}

deny contains "may_not_act_for_this_user" if {
	acting_party_is_known
	not covered
}

acting_party_is_known if input.stage == "exchange"

acting_party_is_known if input.actor

covered if {
	some role in input.actor.roles
	every theirs in input.subject.roles {
		theirs in may_act_for[role]
	}
}
