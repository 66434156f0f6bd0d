import t from 'tap'
import { type SandboxClaim, sandboxClaimKind, sandboxKind } from '../../src/api/kinds.ts'
import { controllerOf } from '../../src/kube/object.ts'
import { namespace, startClaimStage } from './claim-stage.ts'
import { startSaboteur } from './status-saboteur.ts'

t.test('status writes that fail', { timeout: 110_000 }, async (t) => {
  const stage = await startClaimStage(t, { audit: false })
  const { client, setUp, claim, until, untilReady } = stage
  await setUp('warm', 3)
  await setUp('env', 0, { envVarsInjectionPolicy: 'Allowed' })
  const ownedBy = async ({ metadata }: SandboxClaim) => {
    const { items } = await client.list(sandboxKind, { namespace })
    return items
      .filter((sandbox) => controllerOf(sandbox)?.uid === metadata.uid)
      .map((sandbox) => sandbox.metadata.name)
  }

  const probe = await client.create(sandboxClaimKind, {
    metadata: { name: 'probe', namespace },
    spec: { warmPoolRef: { name: 'none' } },
  })
  const saboteur = await startSaboteur(t, client, async ({ sabotage }) => {
    let asked = false
    sabotage(() => (asked = true))
    await until('the webhook', async () => {
      const status = { conditions: [] }
      await client
        .patch(
          sandboxClaimKind,
          { namespace, name: probe.metadata.name ?? '' },
          { status },
          { type: 'merge', subresource: 'status' },
        )
        .catch(() => undefined)
      return asked
    })
    sabotage(() => false)
  })
  await client.delete(sandboxClaimKind, { namespace, name: 'probe' })

  await t.test(
    'case 1: the write after an adoption fails once; the claim keeps the sandbox that it was given',
    async (t) => {
      const failed: (string | undefined)[] = []
      saboteur.sabotage(({ status }) => failed.length === 0 && failed.push(status?.sandbox?.name) > 0)
      await claim('warm', 'unlucky')
      const { claim: bound, sandbox } = await untilReady('unlucky')
      t.same(failed, [sandbox.metadata.name])
      t.same(await ownedBy(bound), [sandbox.metadata.name])
      await stage.untilFull('warm', 3)
      t.same(await ownedBy(bound), [sandbox.metadata.name])
    },
  )

  await t.test('case 2: six claims with env at once are all bound though every third write fails', async (t) => {
    let writes = 0
    let failures = 0
    saboteur.sabotage(() => {
      const isThird = ++writes % 3 === 0
      if (isThird) failures++
      return isThird
    })
    const names = Array.from({ length: 6 }, (_, i) => `env-${i}`)
    const spec = { env: [{ name: 'TASK', value: '1' }] }
    await Promise.all(names.map((name) => claim('env', name, spec)))
    for (const name of names) {
      const { claim: bound } = await untilReady(name)
      t.same(await ownedBy(bound), [name])
    }
    t.ok(failures >= 2, 'as it was meant to be')
  })
})
