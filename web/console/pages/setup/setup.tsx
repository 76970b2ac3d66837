import { useMutation, useQuery } from '@tanstack/react-query'
import { type ReactNode, useEffect, useState } from 'react'
import { callConsole } from '../../api/call.ts'
import { isProblem } from '../../api/problem.ts'
import { Button } from '../../components/button.tsx'
import { CopyableText } from '../../components/copy.tsx'
import type { Draft, Field } from '../../components/field.ts'
import { Fields } from '../../components/fields.tsx'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Loading } from '../../components/page.tsx'
import { RelativeTime } from '../../components/time.tsx'
import { makePasskey, makesPasskeys } from './passkey.ts'
import style from './setup.module.css'

interface Invitation {
  role: string
  expiresAt: number
  rpId: string
}

const fields: readonly Field[] = [
  { path: 'name', label: 'Your name', isRequired: true, autoComplete: 'name' },
  { path: 'primaryEmail', label: 'Your e-mail address', isRequired: true, autoComplete: 'email' },
]
const password: Field = {
  ...{ path: 'password', label: 'Password', kind: 'password', isRequired: true, autoComplete: 'new-password' },
}

/** Behind the link that a start or an invitation prints: whoever opens it becomes a member of the console. */
const Setup = () => {
  const [token] = useState(() => location.hash.slice(1))
  const invitation = useQuery({
    queryKey: ['setup', token],
    queryFn: ({ signal }) => callConsole<Invitation>('POST', '/setup/check', { token }, signal),
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (invitation.error)
    return (
      <Frame title="This link does not work">
        <ProblemNotice error={invitation.error} />
        <p>
          It works once, for 30 minutes. A start of the issuer prints a new one while the console has no owner;{' '}
          <code>surrogate console invite --role owner</code> prints one at any time.
        </p>
        <a href="/console/">To the console</a>
      </Frame>
    )
  if (!invitation.data) return <Loading lines={4} />
  return <Join token={token} {...invitation.data} />
}

const Join = ({ token, role, expiresAt }: Invitation & { token: string }) => {
  const [values, setValues] = useState<Draft>({})
  const [byPassword, setByPassword] = useState(!makesPasskeys())
  const [codes, setCodes] = useState<readonly string[]>()
  const join = useMutation({
    mutationFn: async () => {
      const person = { token, name: values['name'], primaryEmail: values['primaryEmail'] }
      const proof = byPassword
        ? { password: values['password'] }
        : { passkey: await makePasskey(await callConsole('POST', '/setup/passkey', person)) }
      return callConsole<{ recoveryCodes?: string[] }>('POST', '/setup', { ...person, ...proof })
    },
    onSuccess: ({ recoveryCodes }) => {
      if (recoveryCodes) setCodes(recoveryCodes)
      else location.assign('/console/')
    },
  })
  if (codes)
    return (
      <Frame title="Your recovery codes" lead="Each signs you in once when you have nothing else. Keep them elsewhere.">
        <CopyableText label="recovery codes" text={codes.join('\n')} />
        <Button kind="main" onPress={() => location.assign('/console/')}>
          I have them: to the console
        </Button>
      </Frame>
    )
  return (
    <Frame
      title={role === 'owner' ? 'Become the owner of this console' : `Join this console as ${role}`}
      lead={
        <>
          The link works once, and ends <RelativeTime at={expiresAt * 1_000} />.
        </>
      }
    >
      <form
        className={style.form}
        onSubmit={(event) => {
          event.preventDefault()
          join.mutate()
        }}
      >
        <ProblemNotice error={join.error} />
        <Fields
          fields={byPassword ? [...fields, password] : fields}
          values={values}
          issues={isProblem(join.error) ? join.error.issues : []}
          onChange={(path, value) => setValues({ ...values, [path]: value })}
        />
        {!byPassword && (
          <Notice>
            A passkey is your device: a finger, a face or a PIN instead of a password. Nobody can ask you for it by
            mail.
          </Notice>
        )}
        <Button kind="main" type="submit" isPending={join.isPending}>
          {byPassword ? 'Continue with the password' : 'Continue with a passkey'}
        </Button>
        {makesPasskeys() && (
          <Button kind="plain" onPress={() => setByPassword(!byPassword)}>
            {byPassword ? 'Use a passkey instead' : 'Use a password instead'}
          </Button>
        )}
      </form>
    </Frame>
  )
}

const Frame = ({ title, lead, children }: { title: string; lead?: ReactNode; children: ReactNode }) => {
  useEffect(() => {
    document.title = `${title} · Console`
  }, [title])
  return (
    <main className={style.frame}>
      <h1>{title}</h1>
      {lead && <p className={style.lead}>{lead}</p>}
      {children}
    </main>
  )
}

export default Setup
