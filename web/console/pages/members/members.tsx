import { useState } from 'react'
import { useRead } from '../../api/queries.ts'
import { useSession } from '../../api/session.tsx'
import { CopyableText } from '../../components/copy.tsx'
import { Fields } from '../../components/fields.tsx'
import { Notice } from '../../components/notice.tsx'
import { Page, Section } from '../../components/page.tsx'
import { consoleRoles } from '../../generated/console-roles.ts'
import { abilities, titles } from './abilities.ts'
import { RoleMembers } from './role-members.tsx'

type RoleName = keyof typeof consoleRoles

const names = Object.keys(consoleRoles) as RoleName[]

/** Who uses this console, and what each may do. */
const MembersPage = () => {
  const { roles } = useSession()
  return (
    <Page
      title="Members"
      lead={`Who uses this console, by role. You are ${roles.join(' and ')}. A change counts at their next click.`}
    >
      <LastOwner />
      {names.map((name) => (
        <RoleMembers key={name} title={titles[name]} roleId={consoleRoles[name].id} lead={abilities[name]} />
      ))}
      <Invite />
    </Page>
  )
}

const LastOwner = () => {
  const { data } = useRead('listRoleUsers', {
    params: { id: consoleRoles.owner.id },
    query: { page: 1, page_size: 20 },
  })
  if (data?.body.length !== 1) return null
  return (
    <Notice kind="warn">
      There is one owner. The last owner who can sign in can be neither removed, suspended nor deleted: whoever loses
      what they sign in with needs a shell on the server then. Make another owner.
    </Notice>
  )
}

const options = Object.fromEntries(names.map((name) => [name, titles[name]]))

const Invite = () => {
  const [role, setRole] = useState('auditor')
  return (
    <Section
      title="Somebody who is no user yet"
      lead="The link that this prints is used once, within 30 minutes. It is made on the server, so that no session of a browser can make members on the quiet."
    >
      <Fields
        fields={[{ path: 'role', label: 'Role', kind: 'choice', options }]}
        values={{ role }}
        onChange={(_, value) => setRole(String(value))}
      />
      <CopyableText label="command" text={`surrogate console invite --role ${role}`} />
    </Section>
  )
}

export default MembersPage
