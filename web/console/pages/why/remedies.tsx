import { Link } from 'wouter'
import type { Why } from '../../api/gateways.ts'
import { RolesWithScope } from './roles-with-scope.tsx'
import style from './why.module.css'

/** What would have allowed a request; the gateway has asked its policies again about each. */
export const Remedies = ({ remedies, audience }: { remedies: Why['wouldAllow']; audience: readonly string[] }) => (
  <ul className={style.remedies} aria-label="What would have allowed it">
    {remedies.map((remedy) => (
      <li key={JSON.stringify(remedy)}>{remedyOf(remedy, audience)}</li>
    ))}
  </ul>
)

const remedyOf = (remedy: Why['wouldAllow'][number], audience: readonly string[]) => {
  if (remedy.change === 'no-actor') return <p>The same request, with nobody acting for the subject.</p>
  if (remedy.change === 'route')
    return (
      <p>
        The route <Link href={`/gateway?route=${remedy.route}`}>{remedy.route}</Link>:{' '}
        <code>
          {remedy.method} {remedy.host}
          {remedy.path}
        </code>
      </p>
    )
  return (
    <>
      <p>
        {remedy.scopes.length === 1 ? 'The scope ' : 'The scopes '}
        <code>{remedy.scopes.join(' ')}</code> in the token.
      </p>
      {remedy.scopes.map((scope) => (
        <RolesWithScope key={scope} scope={scope} audience={audience} />
      ))}
    </>
  )
}
