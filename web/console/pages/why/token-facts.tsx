import { Link } from 'wouter'
import type { Why } from '../../api/gateways.ts'
import { Badge, Facts } from '../../components/page.tsx'
import { FullTime } from '../../components/time.tsx'

/** Who asked, and with what, as far as masks leave it. */
export const TokenFacts = ({ token }: { token: NonNullable<Why['token']> }) => {
  const { issuer, subject, actors, client, organization, audience, scopes, sid, acr, expires, bound } = token
  return (
    <Facts
      facts={{
        Subject: subject && <Known path="/users" id={subject} />,
        'Acting for the subject': actors?.map((actor) => (
          <span key={actor}>
            <Known path="/users" id={actor} />{' '}
          </span>
        )),
        Application: client && <Known path="/applications" id={client} />,
        Organization: organization && <Known path="/organizations" id={organization} />,
        Scopes: scopes && (scopes.length > 0 ? scopes.map((scope) => <Badge key={scope}>{scope}</Badge>) : 'none'),
        Audience: audience?.join(', '),
        Session: sid && (
          <Link href={`/live?sid=${encodeURIComponent(sid)}`}>
            <code>{sid}</code>
          </Link>
        ),
        Impersonation: sid && actors && <Link href={`/impersonations/${encodeURIComponent(sid)}`}>Its time line</Link>,
        Expires: expires && <FullTime at={expires * 1_000} />,
        'Signed in by': acr,
        'Bound to': bound,
        Issuer: issuer,
      }}
    />
  )
}

const Known = ({ path, id }: { path: string; id: string }) => (
  <Link href={`${path}/${encodeURIComponent(id)}`}>
    <code>{id}</code>
  </Link>
)
