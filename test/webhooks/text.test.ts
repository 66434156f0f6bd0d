import * as fc from 'fast-check'
import t from 'tap'
import { plainText, shortened, warningTexts } from '../../webhooks/text.ts'

t.test('control characters, line breaks and direction marks become spaces', async (t) => {
  t.equal(plainText('a\u0000b\r\nc\td\u001b[31me\u0085f\u2028g\u202eh\u2067i'), 'a b c d [31me f g h i')
})

t.test('a half of a surrogate pair is replaced, since it has no UTF-8', async (t) => {
  t.equal(plainText('a\ud83db'), 'a\ufffdb')
  t.equal(plainText('a\u{1f600}b'), 'a\u{1f600}b')
})

t.test('a text that is cut keeps the rule at its end', async (t) => {
  const long = `spec.env[0]: ${'x'.repeat(400)} (claim/env-name)`
  const cut = shortened(long, 255)
  t.equal(cut.length, 255)
  t.match(cut, /^spec\.env\[0\]: x+… \(claim\/env-name\)$/)
  t.equal(shortened('short', 255), 'short')
})

t.test('a warning given twice, or twice alike after cleaning, is given once', async (t) => {
  t.strictSame(warningTexts(['a', 'b\n', 'a', 'b', ' ', '']), ['a', 'b'])
})

t.test('whatever the warnings, each is short, plain, well-formed, and said once', async () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary', maxLength: 600 })), (warnings) => {
      const texts = warningTexts(warnings)
      return (
        new Set(texts).size === texts.length &&
        texts.every((text) => text.length < 256 && text.isWellFormed() && !/\p{Cc}/u.test(text) && text !== '')
      )
    }),
  )
})
