// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Proxy} from "@openzeppelin/contracts/proxy/Proxy.sol";

/// A diamond of ERC-2535 with one facet, which its owner can replace. No slot of a proxy holds the address.
contract TokenDiamond is Proxy {
    struct Facet {
        address facetAddress;
        bytes4[] functionSelectors;
    }

    struct Cuts {
        address owner;
        address facet;
        bytes4[] selectors;
    }

    error NotOwner();

    /// Only the owner; the first caller becomes it.
    function cut(address facet, bytes4[] calldata selectors) external {
        Cuts storage cuts = _cuts();
        if (cuts.owner == address(0)) cuts.owner = msg.sender;
        require(msg.sender == cuts.owner, NotOwner());
        cuts.facet = facet;
        cuts.selectors = selectors;
    }

    function facets() external view returns (Facet[] memory all) {
        all = new Facet[](1);
        all[0] = Facet(_cuts().facet, _cuts().selectors);
    }

    function facetFunctionSelectors(address facet) external view returns (bytes4[] memory selectors) {
        if (facet == _cuts().facet) return _cuts().selectors;
    }

    function facetAddresses() external view returns (address[] memory all) {
        all = new address[](1);
        all[0] = _cuts().facet;
    }

    function facetAddress(bytes4 selector) external view returns (address) {
        bytes4[] storage selectors = _cuts().selectors;
        for (uint256 i = 0; i < selectors.length; i++) if (selectors[i] == selector) return _cuts().facet;
        return address(0);
    }

    function _implementation() internal view override returns (address) {
        return _cuts().facet;
    }

    function _cuts() private pure returns (Cuts storage cuts) {
        bytes32 slot = keccak256("diamond.standard.diamond.storage");
        assembly ("memory-safe") {
            cuts.slot := slot
        }
    }

    receive() external payable {
        _fallback();
    }
}
