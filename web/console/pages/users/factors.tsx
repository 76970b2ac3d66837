import { useRead } from '../../api/queries.ts'
import { ConfirmDeletion } from '../../components/confirm-deletion.tsx'
import { announce, ProblemNotice } from '../../components/notice.tsx'
import { Facts, Loading, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import { RelativeTime } from '../../components/time.tsx'

const kinds = { Totp: 'Authenticator app', WebAuthn: 'Passkey', BackupCode: 'Backup codes' } as const

/** By what the person proves who they are. */
export const Factors = ({ userId, hasPassword }: { userId: string; hasPassword: boolean }) => {
  const { data, error } = useRead('listUserMfaVerifications', { params: { userId } })
  return (
    <Section title="Factors" lead="Taking one away lets somebody in who has lost it; they can add it again.">
      <Facts facts={{ Password: hasPassword ? 'set' : 'none' }} />
      <ProblemNotice error={error} />
      {!data && !error && <Loading lines={2} />}
      {data && (
        <Rows
          title="Factors"
          empty="No passkey and no second factor."
          rows={data.body.map(({ id, type, name, agent, createdAt, lastUsedAt, remainCodes }) => ({
            key: id,
            title: name ?? kinds[type],
            facts: (
              <>
                {kinds[type]} {remainCodes !== undefined && `· ${remainCodes} left `}· added{' '}
                <RelativeTime at={Date.parse(createdAt)} /> · used{' '}
                <RelativeTime at={lastUsedAt === undefined ? null : Date.parse(lastUsedAt)} /> {agent && `· ${agent}`}
              </>
            ),
            actions: (
              <ConfirmDeletion
                {...{ kind: 'factor', name: name ?? kinds[type], operation: 'deleteUserMfaVerification' }}
                params={{ userId, verificationId: id }}
                onDone={() => announce('The factor is gone.')}
              />
            ),
          }))}
        />
      )}
    </Section>
  )
}
