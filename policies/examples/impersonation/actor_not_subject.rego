# Nobody acts for themselves, and nobody acts for somebody through whom they act.
package surrogate.impersonation

deny contains "actor_is_subject" if input.actor.id == input.subject.id

deny contains "actor_is_subject" if input.subject.id in input.actor.chain
