import { nameOfPerson, useSession } from '../../api/session.tsx'
import { Page } from '../../components/page.tsx'

const Home = () => {
  const { user } = useSession()
  return <Page title={`Welcome, ${nameOfPerson(user)}`} />
}

export default Home
