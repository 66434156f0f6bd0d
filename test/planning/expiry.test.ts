import t from 'tap'
import type { SandboxClaim } from '../../src/api/kinds.ts'
import { claimExpiry } from '../../src/planning/expiry.ts'
import { aClaim, at, noon } from './claim-fixtures.ts'

const claim = (lifecycle: SandboxClaim['spec']['lifecycle'], finished?: 'True' | 'False') =>
  aClaim({
    spec: { ...(lifecycle && { lifecycle }) },
    ...(finished && {
      status: {
        conditions: [{ type: 'Finished', status: finished, reason: 'x', message: '', lastTransitionTime: at(5) }],
      },
    }),
  })

t.test('the earlier of the two deadlines that apply is when a claim expires', async (t) => {
  const rows: [SandboxClaim, number | undefined][] = [
    [claim(undefined), undefined],
    [claim({}, 'True'), undefined],
    [claim({ shutdownTime: at(10) }), 10],
    [claim({ ttlSecondsAfterFinished: 3 }), undefined],
    [claim({ ttlSecondsAfterFinished: 3 }, 'False'), undefined],
    [claim({ ttlSecondsAfterFinished: 3 }, 'True'), 8],
    [claim({ ttlSecondsAfterFinished: 0 }, 'True'), 5],
    [claim({ shutdownTime: at(10), ttlSecondsAfterFinished: 3 }, 'True'), 8],
    [claim({ shutdownTime: at(6), ttlSecondsAfterFinished: 3 }, 'True'), 6],
  ]
  for (const [subject, seconds] of rows) {
    t.equal(claimExpiry(subject), seconds === undefined ? undefined : noon + seconds * 1000)
  }
})

t.test('a time that cannot be read never comes, and hides no other', async (t) => {
  t.equal(claimExpiry(claim({ shutdownTime: 'tomorrow' })), undefined)
  t.equal(claimExpiry(claim({ shutdownTime: 'tomorrow', ttlSecondsAfterFinished: 1 }, 'True')), noon + 6_000)
})
