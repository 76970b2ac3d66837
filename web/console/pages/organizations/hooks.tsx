import { Link } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { useRefusal } from '../../api/session.tsx'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Badge, Loading, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'

/** The webhooks that hear of this organization alone. */
export const Hooks = ({ organizationId: id }: { organizationId: string }) => {
  const refusal = useRefusal('listHooks')
  const { data, error } = useRead('listHooks', {}, { when: refusal === undefined })
  return (
    <Section
      title="Hooks"
      lead="Receivers of events about this organization and its members; a hook names its organizations."
    >
      {refusal && <Notice>{refusal}</Notice>}
      <ProblemNotice error={error} />
      {!data && !error && !refusal && <Loading lines={2} />}
      {data && (
        <Rows
          title="Hooks"
          empty="No hook is for this organization. Those without organizations hear of all."
          rows={data.body
            .filter(({ organizationIds }) => organizationIds?.includes(id))
            .map((hook) => ({
              key: hook.id,
              title: <Link href={`/hooks/${hook.id}`}>{hook.name || hook.config.url}</Link>,
              facts: hook.config.url,
              actions: !hook.enabled && <Badge kind="warn">off</Badge>,
            }))}
        />
      )}
    </Section>
  )
}
