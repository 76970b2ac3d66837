import { useChange, useRead } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { announce, ProblemNotice } from '../../components/notice.tsx'
import { Loading, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import { RelativeTime } from '../../components/time.tsx'

/** Browsers in which the person has signed in. */
export const Sessions = ({ userId }: { userId: string }) => {
  const { data, error } = useRead('listUserSessions', { params: { userId } })
  const end = useChange('endUserSession')
  return (
    <Section title="Sessions" lead="Ending one also ends what applications got through it.">
      <ProblemNotice error={error ?? end.error} />
      {!data && !error && <Loading lines={2} />}
      {data && (
        <Rows
          title="Sessions"
          empty="They are signed in nowhere."
          rows={data.body.sessions.map(({ payload, lastActiveAt, lastAddress, userAgent }) => ({
            key: payload.uid,
            title: userAgent ?? 'A browser that says nothing of itself',
            facts: (
              <>
                from {lastAddress} · used <RelativeTime at={lastActiveAt} /> · signed in{' '}
                <RelativeTime at={payload.loginTs * 1_000} /> by {payload.amr.join(' and ')}
              </>
            ),
            actions: (
              <Allowed operation="endUserSession">
                <Button
                  onPress={() =>
                    end.mutate(
                      { params: { userId, sessionId: payload.uid }, query: { revokeGrantsTarget: 'all' } },
                      { onSuccess: () => announce('The session is ended.') },
                    )
                  }
                >
                  End
                </Button>
              </Allowed>
            ),
          }))}
        />
      )}
    </Section>
  )
}
