import type { ReactNode } from 'react'
import { isolated } from './isolated.tsx'
import style from './rows.module.css'

export interface RowProps {
  key: string
  title: ReactNode
  facts?: ReactNode
  actions?: ReactNode
}

/** A few things that belong to something: no table, no pages. */
export const Rows = ({ title, rows, empty }: { title: string; rows: readonly RowProps[]; empty: string }) =>
  rows.length === 0 ? (
    <p className={style.empty}>{empty}</p>
  ) : (
    <ul className={style.rows} aria-label={title}>
      {rows.map(({ key, title: name, facts, actions }) => (
        <li key={key}>
          <div className={style.text}>
            <b>{isolated(name)}</b>
            {facts && <span>{isolated(facts)}</span>}
          </div>
          {actions && <div className={style.actions}>{actions}</div>}
        </li>
      ))}
    </ul>
  )
