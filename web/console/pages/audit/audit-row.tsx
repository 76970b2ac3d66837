import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { CopyableText, EntityId } from '../../components/copy.tsx'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Badge, Facts, Loading, Page, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import { FullTime } from '../../components/time.tsx'
import { entryOf, pathOfEntity } from './entry.ts'

/** One row of the audit trail: the call, what it was about, and the events that came of it. */
const AuditRow = ({ params: { id = '' } }: { params: { id?: string } }) => {
  const { data, error } = useRead('getLog', { params: { id } })
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  const row = data.body
  const entry = entryOf(row)
  const { person, applicationId, about, subject, sessionId, ip, userAgent, because, fields, events } = entry
  const { gateway, files } = entry
  return (
    <Page
      title={entry.what}
      above={{ title: 'Audit trail', path: '/audit' }}
      lead={
        <>
          <FullTime at={row.createdAt} />{' '}
          {entry.isRefused ? <Badge kind="bad">refused</Badge> : <Badge kind="good">done</Badge>}
        </>
      }
    >
      <Section title="Who">
        <Facts
          facts={{
            Person: person && <Known path={`/users/${person.userId}`} id={person.userId} />,
            Subject: person ? undefined : subject && <EntityId id={subject} />,
            Client: applicationId && <Known path={`/applications/${applicationId}`} id={applicationId} />,
            About: about && <Known path={`/users/${about}`} id={about} />,
            Session: (person?.sid ?? sessionId) && <EntityId id={(person?.sid ?? sessionId)!} />,
            Address: ip,
            Program: userAgent,
          }}
        />
      </Section>
      {because && <Notice kind="warn">{because}</Notice>}
      {entry.call && (
        <Section title="The call">
          <CopyableText label="request" text={entry.call} />
          <Facts
            facts={{
              Gateway: gateway && <Link href={`/policies?gateway=${gateway}`}>{gateway}</Link>,
              Fields: fields.length > 0 ? fields.map((field) => <Badge key={field}>{field}</Badge>) : undefined,
            }}
          />
        </Section>
      )}
      {files.length > 0 && (
        <Section
          title={entry.isRefused ? 'Rules that were to be saved' : 'Rules that were saved'}
          lead="The SHA-256 of each file before and after: the texts are not kept here."
        >
          <Rows
            title="Files"
            empty=""
            rows={files.map(({ file, before, after }) => ({
              key: file,
              title: gateway ? (
                <Link href={`/policies?gateway=${gateway}&file=${encodeURIComponent(file)}`}>{file}</Link>
              ) : (
                file
              ),
              facts: (
                <>
                  <Digest value={before} otherwise="There was none" /> → <Digest value={after} otherwise="taken away" />
                </>
              ),
            }))}
          />
        </Section>
      )}
      {events.length > 0 && (
        <Section title="Events that came of it" lead="Hooks that listen for them hear of it.">
          <Rows
            title="Events"
            empty=""
            rows={events.map(({ type, entity }, index) => {
              const to = pathOfEntity(entity)
              return {
                key: `${index}`,
                title: <Link href={`/events/types/${type}`}>{type}</Link>,
                facts: (
                  <>
                    {to ? <Link href={to}>{entity.kind}</Link> : entity.kind} <code>{entity.id}</code>
                  </>
                ),
                actions: (
                  <Link href={`/events/feed?entity=${encodeURIComponent(`${entity.kind}:${entity.id}`)}`}>
                    All of this {entity.kind}
                  </Link>
                ),
              }
            })}
          />
        </Section>
      )}
      <Section title="As it is kept">
        <CopyableText label="row" text={JSON.stringify(row, null, 2)} />
      </Section>
    </Page>
  )
}

/** Its beginning is enough to compare; the row as it is kept has all of it. */
const Digest = ({ value, otherwise }: { value: string | null; otherwise: string }) =>
  value === null ? otherwise : <code title={value}>{value.slice(0, 12)}</code>

const Known = ({ path, id }: { path: string; id: string }): ReactNode => (
  <Link href={path}>
    <code>{id}</code>
  </Link>
)

export default AuditRow
