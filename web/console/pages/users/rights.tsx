import { Link } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { useReads } from '../../api/reads.ts'
import { ProblemNotice } from '../../components/notice.tsx'
import { Loading, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'

/** What the tokens of a person may carry, API by API, and which role gives it. */
export const Rights = ({ userId }: { userId: string }) => {
  const { data, error } = useRead('listUserRoles', { params: { userId } })
  const roles = data?.body ?? []
  const scopes = useReads(
    'listRoleScopes',
    roles.map(({ id }) => ({ params: { id } })),
  )
  if (error || scopes.error) return <ProblemNotice error={error ?? scopes.error} />
  if (!data || !scopes.bodies) return <Loading lines={4} />
  const given = scopes.bodies.flatMap((body, place) => body.map((scope) => ({ scope, role: roles[place]! })))
  const byResource = Map.groupBy(given, ({ scope }) => scope.resource.id)
  return (
    <>
      {given.length === 0 && (
        <Section title="Rights" lead="What tokens of this person may carry, by the roles that they have everywhere.">
          <p>Nothing: no role of theirs carries a permission.</p>
        </Section>
      )}
      {[...byResource].map(([resourceId, rows]) => {
        const { name, indicator } = rows[0]!.scope.resource
        return (
          <Section key={resourceId} title={name} lead={<code>{indicator}</code>}>
            <Rows
              title={name}
              empty=""
              rows={[...Map.groupBy(rows, ({ scope }) => scope.name)].map(([permission, from]) => ({
                key: permission,
                title: <code>{permission}</code>,
                facts: (
                  <>
                    by{' '}
                    {from.map(({ role }, place) => (
                      <span key={role.id}>
                        {place > 0 && ', '}
                        <Link href={`/roles/${role.id}`}>{role.name}</Link>
                      </span>
                    ))}
                  </>
                ),
              }))}
            />
          </Section>
        )
      })}
      <p>Roles in an organization count in its tokens alone: they stand at the organization.</p>
    </>
  )
}
