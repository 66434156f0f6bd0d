import t from 'tap'
import { tellOfActors } from './actors-story.ts'

// Most of it is waiting for the autoscaler, which looks every fifteen seconds.
t.setTimeout(150_000)

t.test('with a service account for each controller', { timeout: 150_000 }, (t) =>
  tellOfActors(t, { serviceAccountCredentials: true }),
)
