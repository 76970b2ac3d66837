import { useSession } from '../../api/session.tsx'
import { CopyableText } from '../../components/copy.tsx'
import { Notice } from '../../components/notice.tsx'
import { Section } from '../../components/page.tsx'

/** Shown once; nobody has it afterwards. */
export const SubjectToken = ({ token }: { token: { subjectToken: string; expiresIn: number } }) => {
  const { baseUrl } = useSession()
  return (
    <Section title="The subject token">
      <Notice kind="good">
        <p>
          It is good once, for {Math.round(token.expiresIn / 60)} minutes, and shown here only. Give it to the
          application; the session begins with its exchange.
        </p>
      </Notice>
      <CopyableText label="subject token" text={token.subjectToken} />
      <CopyableText label="exchange by curl" text={exchangeOf(baseUrl, token.subjectToken)} />
    </Section>
  )
}

const exchangeOf = (
  baseUrl: string,
  subjectToken: string,
) => `curl '${baseUrl}/oidc/token' -u "$CLIENT_ID:$CLIENT_SECRET" \\
  -d grant_type=urn:ietf:params:oauth:grant-type:token-exchange -d client_id="$CLIENT_ID" \\
  -d subject_token=${subjectToken} \\
  -d subject_token_type=urn:ietf:params:oauth:token-type:access_token \\
  -d resource="$RESOURCE" -d scope="$SCOPE"`
