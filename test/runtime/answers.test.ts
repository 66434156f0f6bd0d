import t from 'tap'
import type { KubeObject } from '../../src/kube/object.ts'
import { Answers } from '../../src/runtime/answers.ts'

const version = (resourceVersion: string, uid = 'u'): KubeObject => ({ metadata: { uid, resourceVersion } })

t.test('an answer is newer than the cache until the cache shows it, and is then dropped', async (t) => {
  const answers = new Answers()
  answers.remember(version('10'), 0)
  t.same(answers.newest(version('9')), version('10'), 'by number, not by text')
  t.equal(answers.size, 1)
  t.same(answers.newest(version('10')), version('10'))
  t.equal(answers.size, 0)
  answers.remember(version('10'), 0)
  t.same(answers.newest(version('11')), version('11'))
  t.equal(answers.size, 0)
})

t.test('objects without an answer are what the cache shows', async (t) => {
  const answers = new Answers()
  answers.remember(version('10'), 0)
  t.same(answers.newest(version('1', 'other')), version('1', 'other'))
  t.same(answers.newest({ metadata: {} }), { metadata: {} })
  t.same(answers.newest({ metadata: { uid: 'u' } }), version('10'), 'no version is older than any')
})

t.test('of two answers about one object the newer stays, whichever came first', async (t) => {
  const answers = new Answers()
  answers.remember(version('10'), 0)
  answers.remember(version('9'), 5)
  t.same(answers.about('u', 7), { object: version('10'), ageMs: 7 })
  answers.remember(version('10'), 5)
  t.same(answers.about('u', 7), { object: version('10'), ageMs: 2 }, 'said again, it is as good as new')
  answers.remember(version('11'), 6)
  t.same(answers.about('u', 7), { object: version('11'), ageMs: 1 })
})

t.test('what has no UID cannot be remembered', async (t) => {
  const answers = new Answers()
  answers.remember({ metadata: { resourceVersion: '1' } }, 0)
  t.equal(answers.size, 0)
})

t.test('only news of the very version that was answered is an echo, and once', async (t) => {
  const answers = new Answers()
  t.notOk(answers.isEcho(version('10')), 'nothing was answered')
  t.notOk(answers.isEcho({ metadata: {} }))
  answers.remember(version('10'), 0)
  t.notOk(answers.isEcho(version('9')))
  t.notOk(answers.isEcho(version('11')))
  t.ok(answers.isEcho(version('10')))
  t.equal(answers.about('u', 0), undefined, 'the cache has caught up')
  t.notOk(answers.isEcho(version('10')))
})

t.test('answers are forgotten one by one or all at once', async (t) => {
  const answers = new Answers()
  for (const uid of ['a', 'b', 'c']) answers.remember(version('1', uid), 0)
  answers.forget('a')
  answers.forget('unknown')
  t.equal(answers.size, 2)
  answers.clear()
  t.equal(answers.size, 0)
})
