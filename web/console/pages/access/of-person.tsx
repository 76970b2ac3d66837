import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import { askGateway } from '../../api/gateways.ts'
import { useRead } from '../../api/queries.ts'
import { Button } from '../../components/button.tsx'
import { Fields } from '../../components/fields.tsx'
import { CopyInspectionCurl } from '../../components/inspection-curl.tsx'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Badge, Loading, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import type { Inspection } from '../../generated/inspection.ts'
import style from './access.module.css'
import { type WouldBe, wouldBe } from './would-be-tokens.ts'

/** Its tokens are for nobody but this page. */
const consoleClientId = 'surrogate-console'

/** A person and an application: what they may do at each route. The question is in the address. */
export const OfPerson = ({ gateway }: { gateway: string }) => {
  const [search, setSearch] = useSearchParams()
  const asked = {
    person: search.get('person') ?? '',
    application: search.get('application') ?? '',
    organization: search.get('organization') ?? '',
  }
  const [typed, setTyped] = useState(asked)
  const { data: applications } = useRead('listApplications', { query: { page: 1, page_size: 100 } })
  const possible = (applications?.body ?? []).filter(({ id }) => id !== consoleClientId)
  const application = typed.application || possible[0]?.id || ''
  const isAsked = search.has('application')
  const { data, error } = useQuery({
    queryKey: ['access', gateway, asked],
    queryFn: async ({ signal }) => {
      const { person, application: applicationId, organization: organizationId } = asked
      const who = await wouldBe({ person, applicationId, organizationId }, signal)
      return { who, access: await askGateway(gateway, 'access', { body: { tokens: who.tokens } }, signal) }
    },
    enabled: isAsked,
  })
  return (
    <>
      <Section
        title="Who asks"
        lead="With the tokens that this issuer would give them now, if they signed in with a password and the application asked for every permission. Custom claims are in them. Without a person it is the application itself."
      >
        <form
          className={style.ask}
          onSubmit={(event) => {
            event.preventDefault()
            setSearch((before) => {
              const next = new URLSearchParams(before)
              next.set('person', typed.person.trim())
              next.set('application', application)
              // Whoever it is may not belong to it.
              next.delete('organization')
              return next
            })
          }}
        >
          <Fields
            fields={[
              { path: 'person', label: 'Person', hint: 'Id, name, or part of an address.', autoComplete: 'off' },
              {
                ...{ path: 'application', label: 'Application', kind: 'choice', isRequired: true },
                options: Object.fromEntries(possible.map(({ id, name }) => [id, name])),
              },
            ]}
            values={{ ...typed, application }}
            onChange={(path, value) => setTyped({ ...typed, [path]: String(value) })}
          />
          <Button type="submit" kind="main" isDisabled={application === ''}>
            Show what they may do
          </Button>
        </form>
        {applications && possible.length === 0 && <p>There is no application yet.</p>}
        <ProblemNotice error={isAsked ? error : undefined} />
      </Section>
      {isAsked && !data && !error && <Loading />}
      {isAsked && data && !error && <Answers gateway={gateway} {...data} />}
    </>
  )
}

type Row = Inspection['access']['answer']['answers'][number]

const Answers = ({
  gateway,
  who,
  access,
}: {
  gateway: string
  who: WouldBe
  access: Inspection['access']['answer']
}) => {
  const [search] = useSearchParams()
  const only = search.get('show') ?? 'all'
  const rows = access.answers.filter(({ allow }) => only === 'all' || allow === (only === 'allowed'))
  const allowed = access.answers.filter(({ allow }) => allow).length
  const organizations = {
    '': 'in no organization',
    ...Object.fromEntries(who.organizations.map(({ id, name }) => [id, name])),
  }
  return (
    <Section
      title={`What ${who.name} may do`}
      lead={`${allowed} of ${access.answers.length} combinations of route and method. Limits, bodies and header fields are not looked at.`}
      actions={<CopyInspectionCurl name="access" input={{ body: { tokens: who.tokens } }} />}
    >
      {who.organizations.length > 0 && (
        <Choice label="In an organization" name="organization" options={organizations} />
      )}
      {who.refusals.map(({ message, audiences }) => (
        <Notice key={message} kind="warn">
          The issuer would give no token for {audiences.join(', ')}: {message}
        </Notice>
      ))}
      {who.more && <Notice kind="warn">There are more API resources than tokens are previewed for.</Notice>}
      <Choice label="Show" name="show" options={{ '': 'all', allowed: 'allowed', denied: 'denied' }} />
      {access.more && <Notice kind="warn">There are more routes than are asked at once.</Notice>}
      <Rows
        title="Routes and methods"
        empty="None."
        rows={rows.map((row) => ({
          key: `${row.route} ${row.method}`,
          title: (
            <>
              {row.method} <code>{row.path}</code>
            </>
          ),
          facts: <RowFacts row={row} />,
          actions: row.status !== 404 && <Line gateway={gateway} who={who} row={row} />,
        }))}
      />
    </Section>
  )
}

/** One of a few, in the address; the first one is what there is without. */
const Choice = ({
  label,
  name,
  options,
}: {
  label: string
  name: string
  options: Readonly<Record<string, string>>
}) => {
  const [search] = useSearchParams()
  const current = search.get(name) ?? ''
  const linkTo = (value: string) => {
    const query = new URLSearchParams(search)
    if (value === '') query.delete(name)
    else query.set(name, value)
    return `/access?${query}`
  }
  return (
    <nav className={style.show} aria-label={label}>
      {Object.entries(options).map(([value, text]) => (
        <Link key={value} href={linkTo(value)} {...(value === current && { 'aria-current': 'true' })}>
          {text}
        </Link>
      ))}
    </nav>
  )
}

const RowFacts = ({ row: { route, allow, status, reason, requiredScopes, without } }: { row: Row }) => (
  <>
    {route} ·{' '}
    {allow ? (
      <Badge kind="good">allowed</Badge>
    ) : (
      <Badge kind="bad">
        {status} {reason}
      </Badge>
    )}
    {requiredScopes && requiredScopes.length > 0 && ` · lacks ${requiredScopes.join(', ')}`}
    {without.length > 0 && ` · without ${without.join(', ')}`}
  </>
)

/** The line that says so: asked for one row at a time, since the compiler tells it. */
const Line = ({ gateway, who, row }: { gateway: string; who: WouldBe; row: Row }) => {
  const [isWanted, setWanted] = useState(false)
  const body = { tokens: who.tokens, routes: [row.route], methods: [row.method] }
  const { data, error } = useQuery({
    queryKey: ['access line', gateway, body],
    queryFn: ({ signal }) => askGateway(gateway, 'access', { body }, signal),
    enabled: isWanted,
  })
  if (!isWanted)
    return (
      <Button kind="plain" label={`The line for ${row.method} ${row.route}`} onPress={() => setWanted(true)}>
        The line
      </Button>
    )
  if (error) return <ProblemNotice error={error} />
  if (!data) return <span role="status">…</span>
  const line = data.answers[0]?.line
  if (!line) return <span>No rule was asked, or no compiler is at hand.</span>
  return (
    <Link href={`/policies?gateway=${gateway}&file=${encodeURIComponent(line.file)}`}>
      <code>
        {line.file}:{line.line}
      </code>
    </Link>
  )
}
