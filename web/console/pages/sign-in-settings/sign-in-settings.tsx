import type { Input, OperationId } from '../../api/operations.ts'
import { useRead } from '../../api/queries.ts'
import { EntityForm } from '../../components/entity-form.tsx'
import type { Field } from '../../components/field.ts'
import { ProblemNotice } from '../../components/notice.tsx'
import { Loading, Page, Tabs } from '../../components/page.tsx'
import { accountGroups, securityGroups, sessionGroups, signInGroups } from './sign-in-fields.ts'
import { type Experience, toBody, toForm } from './sign-in-methods.ts'

type Groups = Readonly<Record<string, readonly Field[]>>

const tabs = [
  { title: 'Signing in', path: '/sign-in-settings' },
  { title: 'Security', path: '/sign-in-settings/security' },
  { title: 'Account pages', path: '/sign-in-settings/account' },
  { title: 'Sessions', path: '/sign-in-settings/sessions' },
]

/** How people sign in, what keeps others out, and what people do with their accounts. */
const SignInSettings = ({ params: { tab } }: { params: { tab?: string } }) => (
  <Page title="Sign-in settings" lead="For everybody who signs in here, to whichever application.">
    <Tabs tabs={tabs} current={tab ? `/sign-in-settings/${tab}` : '/sign-in-settings'} />
    {tab === undefined && <SigningIn />}
    {tab === 'security' && <ExperienceForm name="security" groups={securityGroups} />}
    {tab === 'account' && (
      <SettingsForm read="getAccountCenterSettings" update="updateAccountCenterSettings" groups={accountGroups} />
    )}
    {tab === 'sessions' && (
      <SettingsForm read="getSessionSettings" update="updateSessionSettings" groups={sessionGroups} />
    )}
  </Page>
)

const SigningIn = () => {
  const { data, error } = useRead('listConnectors')
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  const social = data.body.filter(({ type }) => type === 'Social')
  const targets = Object.fromEntries(social.map(({ target, name }) => [target, name]))
  return <ExperienceForm name="sign-in" groups={signInGroups(targets)} />
}

const ExperienceForm = ({ name, groups }: { name: string; groups: Groups }) => (
  <SettingsForm
    {...{ name, groups, read: 'getSignInExperience', update: 'updateSignInExperience', bodyOf: toBody }}
    toForm={(record) => toForm(record as Experience)}
  />
)

interface SettingsFormProps<Read extends OperationId, Update extends OperationId> {
  name?: string
  read: Read
  update: Update
  groups: Groups
  toForm?(record: object): object
  bodyOf?(change: Record<string, unknown>): Record<string, unknown>
}

const SettingsForm = <Read extends OperationId, Update extends OperationId>(props: SettingsFormProps<Read, Update>) => {
  const { name = props.update, read, update, groups, toForm: formOf = (record) => record, bodyOf } = props
  const { data, error } = useRead(read)
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  const params = {} as Input<Update>['params'] & object
  return (
    <EntityForm
      {...{ name, operation: update, params, groups, etag: data.etag }}
      record={formOf(data.body as object)}
      {...(bodyOf && { bodyOf })}
    />
  )
}

export default SignInSettings
