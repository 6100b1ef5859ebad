/** How each kind of test tool is made. Folders are beside this file; versions are in the files of those folders only. */
import type { ProgramName } from './programs.ts';

export interface GoRecipe {
  readonly kind: 'go';
  /** Holds go.mod and go.sum. */
  readonly folder: string;
  readonly package: string;
  readonly seconds: number;
  /** Build tags, the same for all programs of a folder. */
  readonly tags?: string;
  /** Prints the version. Present for a program that is also taken from KUBEBUILDER_ASSETS or PATH. */
  readonly versionArgs?: readonly string[];
}

/** Files in Go modules, such as the CustomResourceDefinitions of a project. The tool is one folder with all of them. */
export interface GoFilesRecipe {
  readonly kind: 'go-files';
  /** Holds go.mod and go.sum. */
  readonly folder: string;
  readonly modules: readonly { readonly module: string; readonly folders: readonly string[] }[];
  /** How the names of the files end. */
  readonly suffix: string;
  readonly seconds: number;
}

export interface PythonRecipe {
  readonly kind: 'python';
  /** Holds requirements.txt. */
  readonly folder: string;
  readonly seconds: number;
  /** The only Python that the tool supports, such as `3.13`. When absent, any from 3.10 on. */
  readonly python?: '3.13';
  readonly platform?: NodeJS.Platform;
}

/** Java programs. The tool is the folder of their jars. */
export interface MavenRecipe {
  readonly kind: 'maven';
  /** Holds pom.xml. */
  readonly folder: string;
  readonly seconds: number;
  readonly platform?: NodeJS.Platform;
}

/** A package that only some suites need. It is not a dependency of the project, because then every clone would install it. */
export interface NpmRecipe {
  readonly kind: 'npm';
  /** What compiles its sources; absent for a package of plain JavaScript. */
  readonly compilers?: readonly ProgramName[];
  /** Holds package.json and package-lock.json. */
  readonly folder: string;
  readonly package: string;
  readonly seconds: number;
  readonly platform?: NodeJS.Platform;
}

/** Programs of the operating system's packages, which are not installed here. The path of the tool is the first one's. */
export interface SystemRecipe {
  readonly kind: 'system';
  readonly programs: readonly [ProgramName, ...ProgramName[]];
  readonly platform?: NodeJS.Platform;
}

/** `seconds`: how long the first installation takes on two idle processors, for the progress line. */
export type InstalledRecipe = GoRecipe | GoFilesRecipe | PythonRecipe | MavenRecipe | NpmRecipe;
export type Recipe = InstalledRecipe | SystemRecipe;

export interface Tool<R extends Recipe = Recipe> {
  readonly name: string;
  readonly recipe: R;
}

/** Where a tool is, or one sentence for the user about why it is not available. */
export type ToolLocation = { readonly path: string } | { readonly missing: string };

/** The machine as the installer sees it. Unit tests pass their own. */
export interface Machine {
  readonly env: NodeJS.ProcessEnv;
  readonly fetch: typeof fetch;
  readonly progress: (line: string) => void;
}
