import { Link, useLocation } from 'wouter'
import { isAllowed } from '../api/operations.ts'
import { useSession } from '../api/session.tsx'
import { Icon } from '../design/icon.tsx'
import { type ConsolePage, groups, needOf } from './console-page.ts'
import style from './rail.module.css'

/** The pages by group; those that the person may not read are dimmed, and say why when they are opened. */
export const Rail = ({ pages, onGo }: { pages: readonly ConsolePage[]; onGo(): void }) => {
  const [location] = useLocation()
  const { scopes } = useSession()
  return (
    <nav className={style.nav} aria-label="Pages">
      {groups.map((group) => {
        const rows = pages.filter((page) => page.group === group)
        if (rows.length === 0) return null
        return (
          <section key={group} aria-label={group || 'Overview'}>
            {group && <h2>{group}</h2>}
            <ul>
              {rows.map(({ path, title, icon, ...page }) => (
                <li key={path}>
                  <Link
                    href={path}
                    onClick={onGo}
                    data-dim={isAllowed(needOf(page), scopes) ? undefined : true}
                    {...(isWithin(location, path) && { 'aria-current': 'page' })}
                  >
                    {icon && <Icon name={icon} />}
                    {title}
                  </Link>
                </li>
              ))}
            </ul>
          </section>
        )
      })}
    </nav>
  )
}

const isWithin = (location: string, path: string): boolean =>
  location === path || (path !== '/' && location.startsWith(`${path}/`))
