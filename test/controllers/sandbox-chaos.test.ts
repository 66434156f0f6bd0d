import * as fc from 'fast-check'
import t from 'tap'
import { persistentVolumeClaims, pods, services } from '../../src/api/core.ts'
import { sandboxKind, type Sandbox } from '../../src/api/kinds.ts'
import { createSandboxController } from '../../src/controllers/sandbox-controller.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { kubeError, type Fault } from '../support/memory-api.ts'
import { dataTemplate } from '../planning/sandbox-fixtures.ts'
import { Harness } from './sandbox-harness.ts'

const sandbox = (name: string): Sandbox => ({
  metadata: { name, namespace: 'ns' },
  spec: {
    podTemplate: { spec: { containers: [{ name: 'main', image: 'python' }] } },
    service: true,
    volumeClaimTemplates: [dataTemplate],
  },
})

type Trouble = 'none' | 'lost' | 'conflict' | 'busy' | 'broken'
const troubles: Record<Trouble, Awaited<ReturnType<Fault>>> = {
  none: undefined,
  lost: 'lost',
  conflict: kubeError('Conflict'),
  busy: kubeError('TooManyRequests'),
  broken: kubeError('ServerError'),
}
const trouble = fc.constantFrom<Trouble>('none', 'none', 'none', 'lost', 'conflict', 'busy', 'broken')
const turn = fc.constantFrom('settle', 'kubelet', 'lag', 'catchUp', 'crash', 'wait')

t.test('whatever goes wrong on the way, a sandbox ends up ready with one Pod of its own', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(trouble, { maxLength: 20 }), fc.array(turn, { maxLength: 12 }), async (faults, turns) => {
      const h = new Harness(t, createSandboxController)
      const ahead = [...faults]
      await h.put(sandboxKind, sandbox('box'))
      h.api.fault = () => troubles[ahead.shift() ?? 'none']
      for (const each of turns) {
        if (each === 'settle') await h.settle()
        if (each === 'kubelet') await h.unharmed(() => h.kubelet())
        if (each === 'lag') h.caches.pods.pause()
        if (each === 'catchUp') h.caches.pods.resume()
        if (each === 'wait') await h.advance(1_500)
        if (each === 'crash') {
          await h.crash()
          h.start()
          await h.look('ns/box')
        }
      }
      h.caches.pods.resume()
      await h.advance(120_000)
      await h.unharmed(() => h.kubelet())
      await h.advance(120_000)
      const status = h.sandbox()?.status
      await h.crash()
      return (
        findCondition(status?.conditions, 'Ready')?.status === 'True' &&
        [pods, services, persistentVolumeClaims].every((resource) => h.api.all(resource).length === 1)
      )
    }),
    { numRuns: 60 },
  )
})
