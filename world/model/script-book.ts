import { HttpError } from '#world/router.ts'
import { type Conversation, lastUserText, turnsBehind } from './conversation.ts'
import { defaultSteps } from './default-answer.ts'
import { ModelError } from './errors.ts'
import type { Failure } from './plan.ts'
import type { Script, Step } from './script.ts'

/** The registered scripts, and which turn of which script answers a conversation. */

export const localModel = 'local'
const scriptsMax = 200
const scriptCharactersMax = 2_000_000
const charactersMax = 20_000_000

export type ScriptBook = {
  set(script: Script): void
  remove(name: string): void
  clear(): void
  all(): Script[]
  models(): string[]
  /** The steps of the next turn, and the name that its failures are counted under. */
  turnOf(conversation: Conversation): { steps: readonly Step[]; key: string }
  /** A failure that is due now; asking consumes it. */
  nextFailure(key: string, failures: readonly Failure[]): Failure | undefined
}

const modelOf = ({ name }: Script) => `${localModel}-${name}`

export const createScriptBook = (): ScriptBook => {
  const scripts = new Map<string, { script: Script; characters: number }>()
  /** How often each failure has happened; emptied with its script. */
  const failed = new Map<string, number>()
  const all = () => [...scripts.values()].map(({ script }) => script)
  const forget = (name: string) => {
    for (const key of failed.keys()) if (key.startsWith(`${name}:`)) failed.delete(key)
  }

  const scriptFor = (conversation: Conversation): Script | undefined => {
    const { model } = conversation
    if (model !== localModel) {
      const script = all().find((each) => modelOf(each) === model)
      if (script) return script
      throw new ModelError(404, `The model \`${model}\` does not exist or you do not have access to it.`, {
        code: 'model_not_found',
      })
    }
    const text = lastUserText(conversation).toLowerCase()
    // The newest one wins.
    return all().findLast(({ contains }) => contains !== undefined && text.includes(contains.toLowerCase()))
  }

  return {
    set(script) {
      const characters = JSON.stringify(script).length
      if (characters > scriptCharactersMax)
        throw new HttpError(400, `A script has at most ${scriptCharactersMax} characters.`)
      const others = [...scripts.values()].filter((each) => each.script.name !== script.name)
      if (others.length >= scriptsMax) throw new HttpError(400, `There are at most ${scriptsMax} scripts.`)
      const sum = others.reduce((total, each) => total + each.characters, characters)
      if (sum > charactersMax)
        throw new HttpError(400, `All scripts together have at most ${charactersMax} characters.`)
      scripts.delete(script.name)
      scripts.set(script.name, { script, characters })
      forget(script.name)
    },
    remove(name) {
      scripts.delete(name)
      forget(name)
    },
    clear() {
      scripts.clear()
      failed.clear()
    },
    all,
    models: () => [localModel, ...all().map(modelOf)],
    turnOf(conversation) {
      const script = scriptFor(conversation)
      const turn = script && turnsBehind(conversation, script.turns_from)
      const at = script?.repeat && turn !== undefined ? turn % Math.max(1, script.turns.length) : turn
      const steps = script?.turns[at ?? 0]
      if (!script || !steps) return { steps: defaultSteps(conversation), key: '' }
      return { steps, key: `${script.name}:${at}` }
    },
    nextFailure(key, failures) {
      for (const [at, failure] of failures.entries()) {
        const count = failed.get(`${key}:${at}`) ?? 0
        if (count >= (failure.times ?? 1)) continue
        failed.set(`${key}:${at}`, count + 1)
        return failure
      }
      return undefined
    },
  }
}
