import type { QueryClient } from '@tanstack/react-query'
import { Link } from 'wouter'
import { decisionQuery, useDecision, useWhy, whyQuery } from '../../api/gateways.ts'
import { isProblem } from '../../api/problem.ts'
import { CopyableText, CopyButton, EntityId } from '../../components/copy.tsx'
import { CopyInspectionCurl } from '../../components/inspection-curl.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Badge, Facts, Loading, Page, type PageProps, Section } from '../../components/page.tsx'
import { FullTime } from '../../components/time.tsx'
import { verdictKinds } from '../live/decision-row.ts'
import { curlOfDecision } from './curl-of-decision.ts'
import { NearMisses } from './near-misses.tsx'
import { NotFound } from './not-found.tsx'
import { Remedies } from './remedies.tsx'
import { Rules } from './rules.tsx'
import { Stages } from './stages.tsx'
import { TokenFacts } from './token-facts.tsx'
import style from './why.module.css'

export const ask = (client: QueryClient, { request = '' }: PageProps['params']): void => {
  void client.prefetchQuery(whyQuery(request))
  void client.prefetchQuery(decisionQuery(request))
}

/** From the id that a caller saw to why the request ended so: the rule, the line, what would have allowed it. */
const WhyPage = ({ params: { request = '' } }: PageProps) => {
  const { data: why, error } = useWhy(request)
  // Shown below; asked for at once, since why takes the gateway a moment.
  useDecision(request)
  if (isProblem(error) && error.status === 404) return <NotFound request={request} problem={error} />
  if (error) return <ProblemNotice error={error} />
  if (!why) return <Loading />
  const { gateway, verdict, status, method, host, path, route, refusal, rules, wouldAllow, nearMisses, token, notes } =
    why
  const what = [method, path].filter(Boolean).join(' ') || 'A request'
  const isPolicys = refusal === undefined || refusal.stage === 'policy'
  return (
    <Page
      title={what}
      above={{ title: 'Live', path: '/live' }}
      lead={
        <>
          <Badge kind={verdictKinds[verdict]}>{verdict}</Badge> {status === 0 ? 'without an answer' : status} ·{' '}
          <FullTime at={Date.parse(why.timestamp)} /> · at {gateway} · request <EntityId id={request} />
        </>
      }
      actions={
        <>
          <CopyInspectionCurl name="why" input={{ params: { request } }} />
          {isPolicys && (
            <LinkButton icon="code" path={`/policies?tab=playground&request=${encodeURIComponent(request)}`}>
              Open in the playground
            </LinkButton>
          )}
        </>
      }
    >
      {refusal ? (
        <Notice kind={verdict === 'failed' ? 'warn' : 'bad'}>
          <p>
            <strong>{refusal.because}</strong>
          </p>
          <p>
            <code>{refusal.code}</code>
          </p>
        </Notice>
      ) : (
        <Notice kind="good">It was allowed.</Notice>
      )}
      <Stages ended={refusal?.stage} />
      {refusal && (
        <Section title="What would have allowed it" lead="Each was asked of the policies in force, and they allow it.">
          {wouldAllow.length > 0 ? (
            <Remedies remedies={wouldAllow} audience={token?.audience ?? []} />
          ) : (
            <p>
              Nothing that was tried: {notes.length > 0 ? 'see below why.' : 'scopes, actor and other routes were.'}
            </p>
          )}
        </Section>
      )}
      {notes.length > 0 && (
        <Notice>
          {notes.map((note) => (
            <p key={note}>{note}</p>
          ))}
        </Notice>
      )}
      <Section title="Route">
        <Facts
          facts={{
            Route: route === undefined ? 'none takes it' : <Link href={`/gateway?route=${route}`}>{route}</Link>,
            Method: method,
            Host: host,
            Path: path && <code>{path}</code>,
          }}
        />
        <NearMisses misses={nearMisses} />
      </Section>
      <Section title="Token">{token ? <TokenFacts token={token} /> : <p>There was none that is good.</p>}</Section>
      {rules && (
        <Section
          title="Rules"
          lead="Those that were asked, from the decision down: + held, − did not, with the line that stood in the way."
        >
          {rules.length > 0 ? <Rules rules={rules} /> : <p>None was asked.</p>}
        </Section>
      )}
      {!rules && isPolicys && (
        <Notice>
          Which rules were asked is told where a compiler and the sources of the rules are at the gateway.
        </Notice>
      )}
      <AsKept request={request} />
    </Page>
  )
}

/** The record that all of this is from. */
const AsKept = ({ request }: { request: string }) => {
  const { data, error } = useDecision(request)
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading lines={3} />
  const { gateway: _, ...record } = data
  const curl = curlOfDecision(record)
  const hidden = [...(record.erased ?? []), ...(record.masked ?? [])]
  return (
    <Section
      title="As it is kept"
      lead="As the decision log has it, without tokens and cookies."
      actions={
        curl && (
          <CopyButton text={curl} label="Copy as curl: the request">
            curl
          </CopyButton>
        )
      }
    >
      {hidden.length > 0 && (
        <p>
          Masks have taken out{' '}
          {hidden.map((pointer, place) => (
            <span key={pointer}>
              {place > 0 && ', '}
              <code>{pointer}</code>
            </span>
          ))}
          .
        </p>
      )}
      {curl && <CopyableText label="request as curl" text={curl} />}
      <details className={style.record}>
        <summary>The whole record</summary>
        <CopyableText label="record" text={JSON.stringify(record, null, 2)} />
      </details>
    </Section>
  )
}

export default WhyPage
