import type { ReactNode } from 'react'
import type { Need } from '../api/operations.ts'
import { useRefusal } from '../api/session.tsx'
import { Notice } from '../components/notice.tsx'
import { Page } from '../components/page.tsx'

/** Whoever may not read what a page is about sees why instead. */
export const Guarded = ({ need, children }: { need?: Need | undefined; children: ReactNode }) => {
  const refusal = useRefusal(need)
  if (refusal === undefined) return children
  return (
    <Page title="Not for you">
      <Notice>
        <p>{refusal}</p>
        <p>An owner of the console can give you another role.</p>
      </Notice>
    </Page>
  )
}
