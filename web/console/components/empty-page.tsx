import type { ReactNode } from 'react'
import type { OperationId } from '../api/operations.ts'
import { Icon, type IconName } from '../design/icon.tsx'
import { CopyAsCurl } from './copy.tsx'
import { CreateLink, type Creation } from './create-link.tsx'
import style from './empty-page.module.css'

interface EmptyPageProps<Id extends OperationId> {
  icon: IconName
  title: string
  /** What the things are that are missing, and what they are good for. */
  children: ReactNode
  /** How the first one is made: here, and by the API. */
  create?: Creation<Id>
}

/** A list that has nothing yet says what to do. */
export const EmptyPage = <Id extends OperationId>({ icon, title, children, create }: EmptyPageProps<Id>) => (
  <div className={style.empty}>
    <span className={style.sign}>
      <Icon name={icon} size={26} />
    </span>
    <h2>{title}</h2>
    <p>{children}</p>
    {create && (
      <div className={style.actions}>
        <CreateLink {...create} />
        <CopyAsCurl operation={create.operation} input={create.input} />
      </div>
    )}
  </div>
)
