import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createQuoteTurns, type TurnQuote } from './quote-turns.ts'

const quote = (user_id: string, quote_key: string): TurnQuote => ({
  market: 'token:1:0x',
  quote_key,
  user_id,
})
const many = Array.from({ length: 200 }, (_, at) => quote('many', `a${at}`))
const one = quote('one', 'z')
const never = () => false

test('a user with many orders delays the quote of another by one turn, in every round', () => {
  const turns = createQuoteTurns()
  for (let round = 0; round < 20; round += 1) {
    const asked = turns.inTurns([...many, one], never).slice(0, 2)
    assert.ok(asked.includes(one), `round ${round}`)
    for (const each of asked) turns.asked(each)
  }
})

test('with one quote per round each user has every other one, and each quote of a user its turn', () => {
  const turns = createQuoteTurns()
  const asked = Array.from({ length: 12 }, () => {
    const [first] = turns.inTurns([...many.slice(0, 6), one], never)
    turns.asked(first!)
    return first!
  })
  assert.equal(asked.filter((each) => each === one).length, 6)
  assert.equal(new Set(asked.filter((each) => each !== one)).size, 6)
})

test('a quote that needs only a second one comes before all turns', () => {
  const turns = createQuoteTurns()
  turns.asked(one)
  assert.equal(turns.inTurns([...many, one], (each) => each === one)[0], one)
})
