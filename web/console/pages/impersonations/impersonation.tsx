import { useRead } from '../../api/queries.ts'
import { CopyAsCurl, EntityId } from '../../components/copy.tsx'
import { isolated } from '../../components/isolated.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Facts, Loading, Page, type PageProps, Section } from '../../components/page.tsx'
import { FullTime } from '../../components/time.tsx'
import { EndSession } from './end-session.tsx'
import { ExportLink } from './export-link.tsx'
import { nameIn } from './named.tsx'
import { useRequests } from './requests-of-session.ts'
import { isGoingOn, type Session, StateOfSession } from './state.tsx'
import { TimeLeft } from './time-left.tsx'
import { type TimeLine, TimeLineSection } from './time-line.tsx'

/** Deliveries come after the end too; afterwards nothing changes any more. In ms. */
const settlesAfter = 120_000
const changesUntil = ({ endedAt, expiresAt }: Session) => (endedAt ?? expiresAt) + settlesAfter

/** One session: how it came about, what was done in it, what came of that, and how it ended. */
const ImpersonationPage = ({ params: { id = '' } }: PageProps) => {
  const input = { params: { id } }
  const { data, error } = useRead('getImpersonationTimeline', input, {
    everyMs: (last) => (last && changesUntil(last.session) > Date.now() ? 2_000 : false),
  })
  const session = data?.body.session
  const requests = useRequests(id, session !== undefined && changesUntil(session) > Date.now())
  if (error) return <ProblemNotice error={error} />
  if (!data || !session) return <Loading />
  const nameOf = nameIn(data.body.names)
  return (
    <Page
      title={`${nameOf(session.actorId ?? session.clientId)} as ${nameOf(session.subjectId)}`}
      above={{ title: 'Impersonation', path: '/impersonations' }}
      lead={
        <>
          <StateOfSession session={session} /> {isGoingOn(session) && <TimeLeft until={session.expiresAt} />}
        </>
      }
      actions={
        <>
          <CopyAsCurl operation="getImpersonationTimeline" input={input} />
          <ExportLink id={id} />
        </>
      }
    >
      <EndSession session={session} />
      <Section title="What it is">
        <Facts facts={factsOf(session, data.body, nameOf)} />
      </Section>
      <TimeLineSection timeline={data.body} requests={requests} nameOf={nameOf} />
    </Page>
  )
}

const factsOf = (session: Session, { entries }: TimeLine, nameOf: (id: string) => string) => {
  const named = (id: string) => (
    <>
      {isolated(nameOf(id))} <EntityId id={id} />
    </>
  )
  const minted = entries.find((entry) => entry.kind === 'minted')
  return {
    Who: named(session.actorId ?? session.clientId),
    'As whom': named(session.subjectId),
    Why: session.reason ?? 'No reason was given.',
    Ticket: session.ticket,
    Through: session.actorId && named(session.clientId),
    'Asked for by': named(minted?.personId ?? session.creatorId),
    API: session.resource && <code>{session.resource}</code>,
    Permissions: session.scopes.join(' ') || 'none',
    May: session.access === 'read' ? 'look, and change nothing' : undefined,
    Began: <FullTime at={session.startedAt} />,
    [session.endedAt === null ? 'Until' : 'Ended']: <FullTime at={session.endedAt ?? session.expiresAt} />,
    Session: <EntityId id={session.id} />,
  }
}

export default ImpersonationPage
