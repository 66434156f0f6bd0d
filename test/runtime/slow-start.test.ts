import t from 'tap'
import { slowStartBatch } from '../../src/runtime/slow-start.ts'

/** Records which calls were under way together. */
function recorder(failAt?: number) {
  const batches: number[][] = []
  let current: number[] = []
  const fn = async (index: number): Promise<void> => {
    if (current.push(index) === 1) batches.push(current)
    await new Promise((resolve) => void setImmediate(resolve))
    current = []
    if (index === failAt) throw new Error(`call ${index}`)
  }
  return { batches, fn }
}

t.test('batches double until everything is done', async (t) => {
  const { batches, fn } = recorder()
  t.strictSame(await slowStartBatch(10, 1, fn), { done: 10 })
  t.strictSame(batches, [[0], [1, 2], [3, 4, 5, 6], [7, 8, 9]])
})

t.test('no batch is larger than the limit', async (t) => {
  const { batches, fn } = recorder()
  t.strictSame(await slowStartBatch(11, 2, fn, 4), { done: 11 })
  t.strictSame(
    batches.map((batch) => batch.length),
    [2, 4, 4, 1],
  )
  const eager = recorder()
  await slowStartBatch(5, 8, eager.fn, 4)
  t.strictSame(eager.batches, [[0, 1, 2, 3], [4]])
})

t.test('the batch in which a call fails is completed, counted and the last', async (t) => {
  const { batches, fn } = recorder(1)
  t.match(await slowStartBatch(10, 1, fn), { done: 2, error: { message: 'call 1' } })
  t.strictSame(batches, [[0], [1, 2]])
})

t.test('a call that throws before its first await is a failure like any other', async (t) => {
  const result = await slowStartBatch(3, 1, () => {
    throw new Error('at once')
  })
  t.match(result, { done: 0, error: { message: 'at once' } })
})

t.test('nothing to do is done at once', async (t) => {
  const { batches, fn } = recorder()
  t.strictSame(await slowStartBatch(0, 1, fn), { done: 0 })
  t.strictSame(batches, [])
})
