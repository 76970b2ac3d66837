import type { ReactNode } from 'react'
import type { Input, OperationId } from '../api/operations.ts'
import { Icon, type IconName } from '../design/icon.tsx'
import { Allowed } from './allowed.tsx'
import { CopyAsCurl } from './copy.tsx'
import style from './empty-page.module.css'
import { LinkButton } from './link-button.tsx'

interface EmptyPageProps<Id extends OperationId> {
  icon: IconName
  title: string
  /** What the things are that are missing, and what they are good for. */
  children: ReactNode
  /** How the first one is made: here, and by the API. */
  create?: { operation: Id; label: string; path: string; input: Input<Id> }
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
        <Allowed operation={create.operation}>
          <LinkButton kind="main" icon="plus" path={create.path}>
            {create.label}
          </LinkButton>
        </Allowed>
        <CopyAsCurl operation={create.operation} input={create.input} />
      </div>
    )}
  </div>
)
