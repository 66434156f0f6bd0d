import t from 'tap'
import { sandboxKind } from '../../src/api/kinds.ts'
import { startScene } from './scene.ts'

const stock = `
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: { name: python }
spec:
  podTemplate:
    spec:
      containers: [{ name: main, image: "python:3.13" }]
---
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: { name: python }
spec:
  replicas: 3
  sandboxTemplateRef: { name: python }
`

t.test('SIGTERM ends a process that leads and has answered reviews, by itself and with exit code 0', async (t) => {
  const { kubectl, client, until, product } = await startScene(t)
  await kubectl(['apply', '-f', '-'], stock)
  // By then keys wait for their time and the API server holds connections to the gate.
  await until('the pool', async () => (await client.list(sandboxKind, { namespace: 'default' })).items.length === 3)
  let how: string | undefined
  void product.process.ended.then((end) => (how = end))
  // Not by its own stop(), which would kill it after a while.
  process.kill(product.process.pid, 'SIGTERM')
  await until('the end of sandgate', async () => how !== undefined)
  t.equal(how, 'exit code 0')
})
