import { useState } from 'react'
import { useRead } from '../../api/queries.ts'
import { useRefusal, useSession } from '../../api/session.tsx'
import { CopyableText } from '../../components/copy.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { Notice } from '../../components/notice.tsx'
import { Facts, Section } from '../../components/page.tsx'
import { Select } from '../../components/select.tsx'
import type { Calls } from '../../generated/api.ts'
import { type Application, keepsSecrets, signsPeopleIn } from './application-types.ts'
import style from './guide.module.css'
import { snippetsOf } from './snippets.ts'

/** What to paste into the code of the application, with its own values. */
export const Guide = ({ application }: { application: Application }) => {
  const { baseUrl } = useSession()
  const refusal = useRefusal('listResources')
  const { data } = useRead('listResources', { query: { includeScopes: true } })
  const resources = ((data?.body ?? []) as Calls['createResource']['answer'][]).filter(
    ({ indicator }) => indicator !== `${baseUrl}/api`,
  )
  const [chosen, setChosen] = useState('')
  const resource =
    resources.find(({ id }) => id === chosen) ?? resources.find(({ isDefault }) => isDefault) ?? resources[0]
  const { redirectUris } = application.oidcClientMetadata
  const snippets = snippetsOf({
    ...{ application, issuer: `${baseUrl}/oidc` },
    ...{ resource: resource?.indicator, redirectUri: redirectUris[0] },
    scopes: resource?.scopes.map(({ name }) => name) ?? [],
  })
  return (
    <>
      <Section title="What its library asks for">
        <Facts
          facts={{
            Issuer: <code>{baseUrl}/oidc</code>,
            'Client id': <code>{application.id}</code>,
            'Client secret': keepsSecrets(application) ? 'shown once, when it was made' : 'none: it uses PKCE',
            ...(signsPeopleIn(application) && { 'Redirect URI': <code>{redirectUris[0] ?? 'none yet'}</code> }),
          }}
        />
        {signsPeopleIn(application) && redirectUris.length === 0 && (
          <Notice kind="warn">
            <p>Nobody can sign in yet: it has no redirect URI.</p>
            <LinkButton path={`/applications/${application.id}/settings`}>Add one</LinkButton>
          </Notice>
        )}
      </Section>
      <Section
        title="In your code"
        lead={
          resource
            ? undefined
            : refusal
              ? 'Tokens are for the default resource. For another API, send its indicator as resource.'
              : 'Tokens here are for no API of yours: register a resource to get some.'
        }
        actions={
          resources.length > 0 && (
            <Select
              label="For the API"
              value={resource?.id}
              options={Object.fromEntries(resources.map(({ id, name }) => [id, name]))}
              onChange={setChosen}
            />
          )
        }
      >
        {snippets.map(({ title, text }) => (
          <div key={title} className={style.snippet}>
            <h3>{title}</h3>
            <CopyableText label={title} text={text} />
          </div>
        ))}
      </Section>
    </>
  )
}
