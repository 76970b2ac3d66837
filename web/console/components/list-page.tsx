import type { ReactNode } from 'react'
import type { OperationId } from '../api/operations.ts'
import type { IconName } from '../design/icon.tsx'
import { CreateLink, type Creation } from './create-link.tsx'
import { EmptyPage } from './empty-page.tsx'
import { EntityTable, type EntityTableProps } from './entity-table.tsx'
import { Page } from './page.tsx'

interface ListPageProps<List extends OperationId, Create extends OperationId>
  extends Omit<EntityTableProps<List>, 'empty'> {
  lead: string
  icon: IconName
  create: Creation<Create>
  /** Beside the way to a new one. */
  actions?: ReactNode
  /** What these things are good for, as long as there are none. */
  empty: ReactNode
}

/** All entities of a kind: the table, the way to a new one, and what to do while there are none. */
export const ListPage = <List extends OperationId, Create extends OperationId>(props: ListPageProps<List, Create>) => {
  const { lead, icon, create, actions, empty, ...table } = props
  return (
    <Page
      title={table.title}
      lead={lead}
      actions={
        <>
          {actions}
          <CreateLink {...create} />
        </>
      }
    >
      <EntityTable
        {...(table as EntityTableProps<List>)}
        empty={
          <EmptyPage icon={icon} title={`No ${table.title.toLowerCase()} yet`} create={create}>
            {empty}
          </EmptyPage>
        }
      />
    </Page>
  )
}
