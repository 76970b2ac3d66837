import { Link } from 'wouter'
import { useReadIfAllowed } from '../../api/queries.ts'
import { isolated } from '../../components/isolated.tsx'
import { Notice } from '../../components/notice.tsx'
import { RelativeTime } from '../../components/time.tsx'
import { nameIn } from '../impersonations/named.tsx'

/** Asked again while somebody looks. In ms. */
const everyMs = 10_000

/** Who acts for customers now, longest first of all, and which customers were asked and have not answered. */
export const Acting = () => {
  const open = { active: true, includeNames: true, page_size: 1 }
  const { data: newest } = useReadIfAllowed('listImpersonations', { ...open, page: 1 }, { everyMs })
  const count = newest?.total ?? 0
  // They are listed newest first.
  const { data: last } = useReadIfAllowed('listImpersonations', { ...open, page: count }, { when: count > 1, everyMs })
  const longest = (count > 1 ? last : newest)?.body[0]
  const asked = { status: 'pending', page: 1, page_size: 1 }
  const waiting = useReadIfAllowed('listImpersonationRequests', asked, { everyMs }).data?.total ?? 0
  if (count + waiting === 0) return null
  const nameOf = nameIn(longest?.names ?? {})
  return (
    <Notice>
      {count > 0 && (
        <p>
          <Link href="/impersonations?active=true">
            {count === 1 ? 'One session goes on' : `${count.toLocaleString('en')} sessions go on`}
          </Link>{' '}
          in which somebody acts for a user
          {longest && (
            <>
              {count === 1 ? ': ' : '; the longest is '}
              <Link href={`/impersonations/${longest.id}`}>
                {isolated(nameOf(longest.actorId ?? longest.clientId))} as {isolated(nameOf(longest.subjectId))}
              </Link>
              , begun <RelativeTime at={longest.startedAt} />
            </>
          )}
          .
        </p>
      )}
      {waiting > 0 && (
        <p>
          <Link href="/impersonations/requests?status=pending">
            {waiting === 1 ? 'One request waits' : `${waiting.toLocaleString('en')} requests wait`} for the customer's
            answer.
          </Link>
        </p>
      )}
    </Notice>
  )
}
