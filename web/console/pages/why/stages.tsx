import { Icon } from '../../design/icon.tsx'
import style from './why.module.css'

/** What a request goes through, in this order. */
const stages = {
  request: 'Request',
  route: 'Route',
  token: 'Token',
  'sign-in': 'Sign-in',
  'rate-limit': 'Rate limit',
  policy: 'Policy',
  upstream: 'Upstream',
} as const

/** How far a request came. `ended`: where it was refused; undefined: nowhere. */
export const Stages = ({ ended }: { ended: string | undefined }) => {
  const names = Object.keys(stages)
  // What went wrong in the gateway itself may have done so anywhere.
  const last = ended === undefined ? names.length : names.indexOf(ended)
  return (
    <ol className={style.stages} aria-label="How far it came">
      {Object.entries(stages).map(([name, title], place) => {
        const state = place < last ? 'passed' : name === ended ? 'ended here' : 'not reached'
        return (
          <li key={name} data-state={state}>
            {state !== 'not reached' && <Icon name={state === 'passed' ? 'check' : 'cross'} size={14} />}
            {title} <span className={style.unseen}>({state})</span>
          </li>
        )
      })}
    </ol>
  )
}
