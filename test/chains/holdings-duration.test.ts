/** How soon a received token is shown, and how long a silent chain delays the others. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type ChainsApp, createChainsApp } from './chains-app.ts'
import { receiveToken, silenceOneChain } from './holdings-in-time.ts'

describe('holdings in time', () => {
  let app: ChainsApp
  before(async () => {
    app = await createChainsApp()
  })
  after(() => app?.[Symbol.asyncDispose]())

  test('a received token is shown within two seconds', async () => {
    const tookMs = await receiveToken(app)
    assert.ok(tookMs < 2_000, `${tookMs} ms`)
  })

  test('a silent chain delays the others by less than three seconds', async () => {
    const tookMs = await silenceOneChain(app)
    assert.ok(tookMs < 3_000, `${tookMs} ms`)
  })
})
