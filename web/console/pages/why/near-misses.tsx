import type { Why } from '../../api/gateways.ts'
import style from './why.module.css'

/** Routes that nearly take a request, and what keeps each from it. */
export const NearMisses = ({ misses }: { misses: Why['nearMisses'] }) => {
  if (misses.length === 0) return null
  return (
    <div>
      <h3>Near misses</h3>
      <ul className={style.plain} aria-label="Near misses">
        {misses.map(({ route, because }) => (
          <li key={route}>
            The route <code>{route}</code> {because}.
          </li>
        ))}
      </ul>
    </div>
  )
}
