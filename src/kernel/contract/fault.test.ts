import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault, invalid, notFound, renameFields } from './fault.ts'

test('an issue of an inner call names the field of the request, and keeps the rest', () => {
  const renamed = renameFields(invalid('legs.0.amount', 'below_minimum', 'Too low', { minimum: '1' }), {
    legs: 'stop_losses',
  })
  assert.ok(renamed instanceof Fault)
  assert.deepEqual(renamed.issues, [
    { path: ['stop_losses', 0, 'amount'], msg: 'Too low', type: 'below_minimum', ctx: { minimum: '1' } },
  ])
  const other = new Fault('no_route', 'No route')
  assert.equal(renameFields(other, { amount: 'token_address' }), other)
})

test('an absent object is answered alike whether or not anybody could own it', () => {
  assert.equal(notFound('quote').message, 'There is no such quote')
  const pack = notFound('pack', 'credits_packs')
  assert.equal(pack.message, 'There is no such pack; `credits_packs` lists those that exist')
})
