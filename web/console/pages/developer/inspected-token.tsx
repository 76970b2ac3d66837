import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { CopyableText } from '../../components/copy.tsx'
import { Notice } from '../../components/notice.tsx'
import { Badge, Facts, Section } from '../../components/page.tsx'
import { FullTime } from '../../components/time.tsx'
import style from './developer.module.css'
import { actorsOf, type Jwt, type PublishedKey, type Verdict, verify } from './jwt.ts'

/** Kinds of tokens by the `typ` of their header. */
const kinds: Readonly<Record<string, string>> = {
  'at+jwt': 'Access token',
  'dpop+jwt': 'DPoP proof',
  'logout+jwt': 'Logout token',
  'secevent+jwt': 'Security event',
  'oauth-authz-req+jwt': 'Request object',
}

const titleOf = ({ header, claims }: Jwt): string =>
  kinds[String(header['typ']).toLowerCase()] ??
  ('nonce' in claims || 'at_hash' in claims || 'auth_time' in claims ? 'ID token' : 'JSON Web Token')

const verdicts: Readonly<Record<Verdict, { kind: 'good' | 'warn' | 'bad'; words: string }>> = {
  valid: { kind: 'good', words: 'signed by this issuer' },
  broken: { kind: 'bad', words: 'the signature is not of this text' },
  'unknown key': { kind: 'warn', words: 'not signed by a key that this issuer publishes' },
  unsigned: { kind: 'bad', words: 'not signed' },
  'unknown algorithm': { kind: 'warn', words: 'signed by an algorithm that is not checked here' },
}

/** One token in words, and as it is. `keys` undefined: not known yet. */
export const InspectedToken = ({ jwt, keys }: { jwt: Jwt; keys: readonly PublishedKey[] | undefined }) => {
  const { header, claims, signed } = jwt
  const { data: verdict } = useQuery({
    queryKey: ['verdict', signed, jwt.signature.join(), keys],
    queryFn: () => verify(jwt, keys ?? []),
    enabled: keys !== undefined,
    gcTime: 0,
  })
  const { iss, sub, aud, client_id, scope, iat, nbf, exp, sid, organization_id, access, cnf } = claims
  const actors = actorsOf(claims)
  return (
    <Section
      title={titleOf(jwt)}
      actions={verdict && <Badge kind={verdicts[verdict].kind}>{verdicts[verdict].words}</Badge>}
    >
      {typeof exp === 'number' && exp * 1_000 < Date.now() && <Notice kind="warn">It has expired.</Notice>}
      <Facts
        facts={{
          Expires: timeOf(exp),
          Issued: timeOf(iat),
          'Not before': timeOf(nbf),
          Issuer: codeOf(iss),
          Subject: codeOf(sub),
          Audience: codeOf(aud),
          Application: codeOf(client_id),
          Scopes: codeOf(scope),
          Organization: codeOf(organization_id),
          Session: codeOf(sid),
          'Bound to a key': cnf ? 'yes, a proof of it must be sent along' : undefined,
          Access: access === 'read' ? 'only reads' : codeOf(access),
          Key: codeOf(header['kid']),
          Algorithm: codeOf(header['alg']),
        }}
      />
      {actors.length > 0 && (
        <div>
          <h3>Who acts</h3>
          <ol className={style.actors} aria-label="Who acts">
            <li>
              <code>{String(sub)}</code> is the person or application that it is about
            </li>
            {actors.map((actor, place) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: somebody may act twice in a chain
              <li key={place}>
                <code>{actor}</code> {place === 0 ? 'acts now' : 'acted before that'}
              </li>
            ))}
          </ol>
        </div>
      )}
      <CopyableText label="header" text={JSON.stringify(header, null, 2)} />
      <CopyableText label="claims" text={JSON.stringify(claims, null, 2)} />
    </Section>
  )
}

const codeOf = (value: unknown): ReactNode =>
  value == null || value === '' ? undefined : <code>{[value].flat().map(String).join(' ')}</code>

/** NumericDate: seconds since the epoch. */
const timeOf = (value: unknown): ReactNode =>
  typeof value === 'number' && Math.abs(value) < 8.64e12 ? <FullTime at={value * 1_000} /> : undefined
