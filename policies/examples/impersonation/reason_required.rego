# No impersonation without a reason and a ticket. Both come with the request for the subject token, and stand in the session.
package surrogate.impersonation

deny contains "reason_required" if not says_why

deny contains "ticket_required" if not names_ticket

says_why if trim_space(input.reason) != ""

names_ticket if startswith(input.ticket, "T-")
