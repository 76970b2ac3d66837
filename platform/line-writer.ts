import { accessSync, closeSync, constants, mkdirSync, openSync, statSync, writeSync, write as writeTo } from 'node:fs'
import { dirname } from 'node:path'
import { isatty } from 'node:tty'

/**
 * Lines for a file or for stdout. `write` neither waits nor throws; a descriptor that takes nothing holds up nobody.
 */
export interface LineWriter {
  /** Takes a line with its end. False: it was dropped, because more than `bufferSize` bytes wait already. */
  write(line: string): boolean
  /**
   * Opens the file anew, after the old one was moved away. Throws, and goes on with the old one, when it cannot be
   * opened.
   */
  reopen(): void
  /** Resolves when everything is written, or could not be for 2 s. */
  close(): Promise<void>
}

export interface LineWriterOptions {
  /** `stdout`, or a file that lines are appended to; the file and its folders are made. */
  to: string
  /** Bytes that may wait to be written. */
  bufferSize: number
  /** After each attempt to write that failed; what was to be written waits for the next one. */
  onError?: (error: Error) => void
  /** After each one that succeeded. */
  onWritten?: () => void
}

/** How long `close` waits for a descriptor that takes nothing, in ms. */
const lastChanceMs = 2_000
/** Pause after an error, such as that of a full disk, in ms. */
const retryMs = 500
/** Pause while a pipe is full, in ms. */
const fullMs = 5

/** Throws the error of the file system when the file cannot be opened. A pipe needs somebody who reads it. */
export const openLines = ({ to, bufferSize, onError, onWritten }: LineWriterOptions): LineWriter => {
  const sink = to === 'stdout' ? stdoutSink() : createSink(openForAppending(to))
  const user: SinkUser = { onError, onWritten }
  sink.users.add(user)
  let closed = false
  return {
    write: (line) => !closed && sink.append(line, bufferSize),
    reopen() {
      if (!closed && to !== 'stdout') sink.replace(openForAppending(to))
    },
    async close() {
      if (closed) return
      closed = true
      await sink.flush()
      sink.users.delete(user)
      if (to !== 'stdout') sink.close()
    },
  }
}

/**
 * Non-blocking: a thread that writes to a full pipe would keep the process from ending. Regular files know no
 * difference.
 */
const appending = constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK
/** Readable for the owner and their group: lines tell who did what. */
const fileMode = 0o640

const openForAppending = (file: string): number => {
  mkdirSync(dirname(file), { recursive: true })
  return openSync(file, appending | constants.O_CREAT, fileMode)
}

/** Throws what would keep `openLines` from opening the file, and makes nothing. */
export const requireAppendable = (file: string): void => {
  try {
    closeSync(openSync(file, appending))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') requireRoomFor(file)
    // A pipe that nobody reads yet.
    else if (code !== 'ENXIO') throw error
  }
}

const requireRoomFor = (path: string): void => {
  const folder = dirname(path)
  if (statSync(folder, { throwIfNoEntry: false }) === undefined) return void requireRoomFor(folder)
  accessSync(`${folder}/`, constants.W_OK | constants.X_OK)
}

type SinkUser = Pick<LineWriterOptions, 'onError' | 'onWritten'>

/** One descriptor and what waits for it. Several writers may share it: a line never stands inside another. */
interface Sink {
  readonly users: Set<SinkUser>
  append(line: string, bufferSize: number): boolean
  /** Goes on with `descriptor`, after what is being written has been written to the one before. */
  replace(descriptor: number): void
  /** Resolves when nothing waits, or after `lastChanceMs`. */
  flush(): Promise<void>
  /** Without waiting and without failing: what the descriptor takes at once is written. */
  flushNow(): void
  close(): void
}

const createSink = (descriptor: number): Sink => {
  const users = new Set<SinkUser>()
  let current = descriptor
  /** Where `underWay` goes: differs from `current` after it was replaced. */
  let target = descriptor
  let waiting = ''
  let underWay: Buffer | undefined
  /** Of `waiting` and `underWay`. */
  let bytes = 0
  /** `writing`: in a thread. `paused`: until it is tried again. */
  let state: 'idle' | 'writing' | 'paused' = 'idle'
  let closed = false
  const onEmpty: (() => void)[] = []

  const retarget = () => {
    if (target !== current) closeSync(target)
    target = current
  }

  const send = (): void => {
    state = 'idle'
    if (underWay === undefined) {
      retarget()
      if (closed) return void closeSync(current)
      if (waiting === '') return void empty()
      underWay = Buffer.from(waiting)
      waiting = ''
    }
    state = 'writing'
    writeTo(target, underWay, sent)
  }

  const sent = (error: NodeJS.ErrnoException | null, written: number): void => {
    if (error?.code === 'EAGAIN') return void pause(fullMs)
    if (error) {
      // A file that was replaced because its disk is full gets no more of it.
      retarget()
      for (const { onError } of users) onError?.(error)
      return void pause(retryMs)
    }
    take(written)
    for (const { onWritten } of users) onWritten?.()
    send()
  }

  const take = (written: number): void => {
    bytes -= written
    underWay = written < underWay!.length ? underWay!.subarray(written) : undefined
  }

  const pause = (ms: number): void => {
    if (closed) {
      underWay = undefined
      return void send()
    }
    state = 'paused'
    setTimeout(send, ms).unref()
  }

  const empty = (): void => {
    for (const resolve of onEmpty.splice(0)) resolve()
  }

  return {
    users,
    append(line, bufferSize) {
      const size = Buffer.byteLength(line)
      if (bytes + size > bufferSize) return false
      bytes += size
      waiting += line
      if (state === 'idle') send()
      return true
    },
    replace(next) {
      current = next
      if (state === 'idle') send()
    },
    flush() {
      if (bytes === 0) return Promise.resolve()
      return new Promise((resolve) => {
        const late = setTimeout(resolve, lastChanceMs)
        onEmpty.push(() => {
          clearTimeout(late)
          resolve()
        })
      })
    },
    flushNow() {
      const rest = state === 'paused' ? `${underWay}${waiting}` : waiting
      try {
        if (rest !== '') writeSync(current, rest)
      } catch {}
    },
    close() {
      closed = true
      waiting = ''
      if (state === 'idle') send()
    },
  }
}

/** Resolves when the lines for stdout are written, or could not be for 2 s: for the end of the process. */
export const flushStdout = async (): Promise<void> => stdout?.flush()

let stdout: Sink | undefined

/** Of the process, and never closed. */
const stdoutSink = (): Sink => {
  if (stdout) return stdout
  const sink = createSink(stdoutDescriptor())
  process.on('exit', sink.flushNow)
  stdout = sink
  return sink
}

/**
 * Node makes pipes and sockets non-blocking when it first looks at `process.stdout`; a terminal must be opened anew for
 * that.
 */
const stdoutDescriptor = (): number => {
  void process.stdout
  if (!isatty(1)) return 1
  try {
    return openSync('/dev/stdout', constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  } catch {
    return 1
  }
}
