import { readFileSync } from 'node:fs'
import { createRegistry } from '#grammar/operation-registry.ts'
import { remember, type ThreadState } from '#grammar/thread-memory.ts'
import { understand } from '#grammar/understand-message.ts'
import type { Understanding } from '#grammar/understanding.ts'
import { contracts } from '../../../src/contracts.ts'
import { universe } from './universe.ts'

/** Utterances with what they mean, as people said them in a thread. */
export type Row = {
  text: string
  thread?: string[]
  mood: string
  intent: string
  slots: Record<string, string>
  then?: { intent: string; slots: Record<string, string> }[]
  operations: string[]
  /** The slot that has to be asked for. */
  ask?: string
}

export const registry = createRegistry(contracts, universe)
export const nowMs = Date.parse('2026-11-26T12:00:00Z')

const read = (name: string): Row[] =>
  readFileSync(`${import.meta.dirname}/${name}`, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Row)

export const questions = read('questions.jsonl')
/** Written before the lexicon, from the list of operations alone. */
export const heldOut = read('held-out.jsonl')

export function stateAfter(thread: readonly string[]): ThreadState {
  let state: ThreadState = {}
  for (const text of thread) state = remember(state, understand(text, { nowMs, state }, registry), nowMs)
  return state
}

export const readText = (text: string, thread: readonly string[] = []): Understanding =>
  understand(text, { nowMs, state: stateAfter(thread) }, registry)
